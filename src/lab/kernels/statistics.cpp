#include "lab/kernels/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "weft/random.h"

namespace weft::lab {
namespace {

constexpr size_t kResamples = 1000;

// In place: the bootstrap takes many.
double median(std::vector<double>& v) {
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  if (v.size() % 2) return *middle;
  return (*middle + *std::max_element(v.begin(), middle)) / 2;
}

// Share of Student's distribution between -t and t.
// Source   Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
double student_between(double t, size_t degrees) {
  const double angle = std::atan2(t, std::sqrt(static_cast<double>(degrees))), c = std::cos(angle);
  const bool odd = degrees % 2;
  double term = odd ? c : 1, sum = degrees == 1 ? 0 : term;
  for (size_t k = odd ? 3 : 2; k < degrees; k += 2) {
    term *= c * c * static_cast<double>(k - 1) / static_cast<double>(k);
    sum += term;
  }
  return odd ? 2 / std::numbers::pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
}

// Yuen's interval of the mean without a fifth of the values at either end, by the spread of all of them with
// those left out replaced by the outermost that are not. Of a few values all count: the rest would say too
// little.
struct Trimmed {
  double mean = 0, half = 0;
};
Trimmed yuen(std::vector<double> v, double confidence) {
  const size_t out = v.size() < 8 ? 0 : v.size() / 5, left = v.size() - 2 * out;
  const auto n = static_cast<double>(v.size()), counted = static_cast<double>(left);
  std::ranges::sort(v);
  const auto begin = v.begin() + static_cast<std::ptrdiff_t>(out);
  const double mean = std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(left), 0.0) / counted;
  for (double& x : v) x = std::clamp(x, v[out], v[v.size() - 1 - out]);
  const double winsorized = std::accumulate(v.begin(), v.end(), 0.0) / n;
  double squares = 0;
  for (const double x : v) squares += (x - winsorized) * (x - winsorized);
  return {mean, student(confidence, left - 1) * std::sqrt(squares / (n - 1) * n) / counted};
}

}  // namespace

double student(double confidence, size_t degrees) {
  double low = 0, high = 1;
  while (student_between(high, degrees) < confidence) low = high, high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (student_between(middle, degrees) < confidence ? low : high) = middle;
  }
  return high;
}

double middle_of(const Generation& pairs) {
  std::vector<double> ratios;
  for (const Pair& p : pairs) ratios.push_back(p.first / p.second);
  return median(ratios);
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(values);
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], at - static_cast<double>(below));
}

Interval ratio_of(const std::vector<double>& processes, double confidence, uint64_t seed) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (processes.empty()) return {kNone, kNone, kNone};
  std::vector<double> drawn = processes, all, logs;
  Interval found{.middle = median(drawn)};
  uint64_t words = 0;
  for (size_t s = 0; s < kResamples; ++s) {
    for (double& d : drawn) d = processes[random_word(seed, words++) % processes.size()];
    all.push_back(median(drawn));
  }
  found.low = quantile(all, (1 - confidence) / 2), found.high = quantile(all, (1 + confidence) / 2);
  if (processes.size() == 1) return found;
  // Of a few processes the bootstrap's interval is too narrow: it can't be wider than what was seen.
  for (const double r : processes) logs.push_back(std::log(r));
  const Trimmed t = yuen(logs, confidence);
  found.low = std::min(found.low, std::exp(t.mean - t.half));
  found.high = std::max(found.high, std::exp(t.mean + t.half));
  return found;
}

std::string_view name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"FASTER", "SAME", "SLOWER", "UNDECIDED", "WRONG", "INVALID"};
  return kNames[static_cast<size_t>(verdict)];
}

Verdict decide(const Interval& ratio, double margin) {
  const double most = 1 + margin, least = 1 / most;
  if (ratio.low >= least && ratio.high <= most) return Verdict::same;
  if (ratio.low > 1 && ratio.middle > most) return Verdict::faster;
  if (ratio.high < 1 && ratio.middle < least) return Verdict::slower;
  return Verdict::undecided;
}

}  // namespace weft::lab
