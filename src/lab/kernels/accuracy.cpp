#include "lab/kernels/accuracy.h"

#include <algorithm>
#include <cmath>

namespace weft::lab {

using conformance::Real;

// Distance in units of the last place; integers count by ones.
static double ulps_between(DType t, Real got, Real want) {
  const Real off = std::fabs(got - want);
  return static_cast<double>(is_float(t) ? off / conformance::format(t).spacing(want) : off);
}

void Accuracy::add(const conformance::Array& got, const conformance::Bounded& truth,
                   const std::string& what) {
  constexpr std::array kLimits{0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0};
  const auto verdict = conformance::judge(got, truth);
  const double worst =
      verdict.ok ? static_cast<double>(verdict.worst) : std::max(1.0, static_cast<double>(verdict.worst));
  if (!verdict.ok && (wrong.empty() || worst > share_of_bound))
    wrong = fmt::format("{}: {}", what, verdict.reason);
  share_of_bound = std::max(share_of_bound, worst);
  const size_t n = std::min(got.v.size(), truth.value.v.size());
  for (size_t i = 0; i < n; ++i) {
    const Real want = truth.value.v[i], off = std::fabs(got.v[i] - want);
    ++elements;
    if (!std::isfinite(want) || !std::isfinite(off)) continue;  // the verdict has judged them
    max_abs = std::max(max_abs, static_cast<double>(off));
    if (want != 0) max_rel = std::max(max_rel, static_cast<double>(off / std::fabs(want)));
    squares_ += static_cast<double>(off * off), truth_squares_ += static_cast<double>(want * want);
    ++ulps[static_cast<size_t>(std::ranges::lower_bound(kLimits, ulps_between(got.dtype, got.v[i], want)) -
                               kLimits.begin())];
  }
  l2 = truth_squares_ > 0 ? std::sqrt(squares_ / truth_squares_) : std::sqrt(squares_);
}

}  // namespace weft::lab
