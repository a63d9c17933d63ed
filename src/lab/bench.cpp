#include "lab/bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>

namespace weft::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kWindow = 8;              // runs that are compared with as many before
constexpr size_t kLeastForQuantiles = 20;  // those of fewer say nothing
constexpr double kSteady = 0.02;

double median(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::nth_element(sorted, sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2));
  return sorted[sorted.size() / 2];
}

bool is_steady(std::span<const double> all) {
  if (all.size() < 2 * kWindow) return false;
  const double now = median(all.last(kWindow)), before = median(all.last(2 * kWindow).first(kWindow));
  return std::fabs(now - before) <= kSteady * before;
}

Result<double> timed(const std::function<Status()>& run) {
  const auto start = Clock::now();
  WEFT_CHECK(run());
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

// The smallest value that a share of q is not above.
double BenchResult::quantile(double q) const {
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(seconds.size())));
  return seconds[std::clamp<size_t>(rank, 1, seconds.size()) - 1];
}

Result<BenchResult> bench(const std::function<Status()>& run, const BenchOptions& options) {
  BenchResult result;
  std::vector<double> before;
  for (double spent = 0; !result.steady && (before.size() < 2 || spent < options.warm_up);) {
    WEFT_TRY(const double s, timed(run));
    before.push_back(s), spent += s;
    result.steady = is_steady(before);
  }
  result.warm_ups = before.size();
  for (double spent = 0; result.seconds.size() < kLeastForQuantiles || spent < options.seconds;) {
    WEFT_TRY(const double s, timed(run));
    result.seconds.push_back(s), spent += s;
  }
  std::ranges::sort(result.seconds);
  return result;
}

}  // namespace weft::lab
