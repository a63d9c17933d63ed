#include "measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace weft::speed {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double time_runs(const Task& task, int64_t n) {
  if (task.before) task.before();
  const double start = now();
  for (int64_t i = 0; i < n; ++i) task.run();
  return (now() - start) / static_cast<double>(n);
}
/// The number of runs that fill the time.
int64_t runs_in(const Task& task, double seconds) {
  task.run();
  int64_t n = 1;
  for (double t = time_runs(task, n); t * static_cast<double>(n) < seconds / 4 && n < int64_t{1} << 30;
       t = time_runs(task, n))
    n *= 4;
  return std::max<int64_t>(1, std::llround(seconds / std::max(1e-9, time_runs(task, n))));
}

}  // namespace

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}
double geometric_mean(const std::vector<double>& v) {
  double s = 0;
  for (const double x : v) s += std::log(x);
  return std::exp(s / static_cast<double>(v.size()));
}

Measured measure(const Task& ours, const Task& peer, double seconds, int rounds) {
  const int64_t n = runs_in(ours, seconds), m = runs_in(peer, seconds);
  std::vector<double> a, b, ratio;
  for (int r = 0; r < rounds; ++r) {
    // Alternates who is first, so that cache contents benefit both.
    const bool first = r % 2 == 0;
    if (first) a.push_back(time_runs(ours, n));
    b.push_back(time_runs(peer, m));
    if (!first) a.push_back(time_runs(ours, n));
    ratio.push_back(b.back() / a.back());
  }
  Measured out{median(a), median(b), median(ratio)};
  std::sort(ratio.begin(), ratio.end());
  out.low = ratio[ratio.size() / 4], out.high = ratio[ratio.size() - 1 - ratio.size() / 4];
  if (ours.result && peer.result) {
    const auto x = ours.result(), y = peer.result();
    double size = 0, off = x.size() == y.size() ? 0 : HUGE_VAL;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      size = std::max(size, double{std::fabs(y[i])});
      const double d = std::fabs(double{x[i]} - double{y[i]});
      off = d <= off ? off : std::isnan(d) ? HUGE_VAL : d;
    }
    out.difference = off == 0 ? 0 : off / size;
  }
  return out;
}

double time_of(const Task& task, double seconds, int rounds) {
  const int64_t n = runs_in(task, seconds);
  std::vector<double> t;
  for (int r = 0; r < rounds; ++r) t.push_back(time_runs(task, n));
  return median(t);
}

}  // namespace weft::speed
