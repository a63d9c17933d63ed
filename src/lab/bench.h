#pragma once
#include <functional>
#include <vector>

#include "weft/status.h"

// How long something takes, again and again.
namespace weft::lab {

struct BenchOptions {
  double seconds = 2;   ///< of measured runs
  double warm_up = 10;  ///< at most, of runs before that
};

struct BenchResult {
  size_t warm_ups = 0;          ///< runs before time was steady
  bool steady = false;          ///< false: it was not before `warm_up` was over
  std::vector<double> seconds;  ///< of each measured run, sorted
  double quantile(double q) const;
};

/// Runs until the median of the last runs differs by less than 2 percent from that of as many before, then
/// measures. `run` waits for its end.
Result<BenchResult> bench(const std::function<Status()>& run, const BenchOptions& options);

}  // namespace weft::lab
