#include "lab/kernels/accuracy.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace weft::lab {

using conformance::Real;

// Distance in units of the last place; integers count by ones.
static double ulps_between(DType t, Real got, Real want) {
  const Real off = std::fabs(got - want);
  return static_cast<double>(is_float(t) ? off / conformance::format(t).spacing(want) : off);
}

std::string text_of(const std::vector<int64_t>& at) { return fmt::format("[{}]", fmt::join(at, ", ")); }

std::string WorstElement::text() const {
  if (!known) return "";
  std::string words =
      fmt::format("result {} {}: got {:.9g}, wants {:.9g} +- {:.3g}", result, text_of(at), got, want, bound);
  for (const auto& o : operands)
    words += fmt::format("; of operand {} {}{}: {:.9g}", o.operand, text_of(o.at),
                         o.values.size() > 1 ? " and on" : "", fmt::join(o.values, " "));
  return words;
}

// By how much of its bound an element is off.
static double share_of(Real got, Real want, Real bound) {
  const Real off = std::fabs(got - want);
  if (got == want || (std::isnan(got) && std::isnan(want)) || bound == conformance::kInf) return 0;
  return std::isfinite(off) && bound > 0 ? static_cast<double>(off / bound) : INFINITY;
}

std::optional<size_t> Accuracy::add(const conformance::Array& got, const conformance::Bounded& truth,
                                    const std::string& what) {
  constexpr std::array kLimits{0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0};
  const auto verdict = conformance::judge(got, truth);
  const double most =
      verdict.ok ? static_cast<double>(verdict.worst) : std::max(1.0, static_cast<double>(verdict.worst));
  if (!verdict.ok && (wrong.empty() || most > share_of_bound))
    wrong = fmt::format("{}: {}", what, verdict.reason);
  share_of_bound = std::max(share_of_bound, most);
  std::optional<size_t> furthest;
  const size_t n = std::min(got.v.size(), truth.value.v.size());
  for (size_t i = 0; i < n; ++i) {
    const Real want = truth.value.v[i], off = std::fabs(got.v[i] - want);
    ++elements;
    nans += std::isnan(got.v[i]), infinities += std::isinf(got.v[i]);
    const double share = share_of(got.v[i], want, truth.error[i]);
    if (share > worst_share_ || !worst.known) {
      worst_share_ = share, furthest = i;
      worst = {.known = true,
               .got = static_cast<double>(got.v[i]),
               .want = static_cast<double>(want),
               .bound = static_cast<double>(truth.error[i])};
    }
    if (!std::isfinite(want) || !std::isfinite(off)) continue;  // the verdict has judged them
    max_abs = std::max(max_abs, static_cast<double>(off));
    if (want != 0) max_rel = std::max(max_rel, static_cast<double>(off / std::fabs(want)));
    squares_ += static_cast<double>(off * off), truth_squares_ += static_cast<double>(want * want);
    ++ulps[static_cast<size_t>(std::ranges::lower_bound(kLimits, ulps_between(got.dtype, got.v[i], want)) -
                               kLimits.begin())];
  }
  l2 = truth_squares_ > 0 ? std::sqrt(squares_ / truth_squares_) : std::sqrt(squares_);
  return furthest;
}

}  // namespace weft::lab
