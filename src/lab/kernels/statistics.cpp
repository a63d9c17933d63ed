#include "lab/kernels/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

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

// Of a few processes the bootstrap's interval is too narrow: it can't be wider than what was seen.
void widen(Interval& found, const std::vector<double>& of_process, double confidence) {
  const auto n = static_cast<double>(of_process.size());
  double mean = 0, squares = 0;
  for (const double r : of_process) mean += std::log(r) / n;
  for (const double r : of_process) squares += (std::log(r) - mean) * (std::log(r) - mean);
  const double half = student(confidence, of_process.size() - 1) * std::sqrt(squares / (n - 1) / n);
  found.low = std::min(found.low, std::exp(mean - half));
  found.high = std::max(found.high, std::exp(mean + half));
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

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(values);
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], at - static_cast<double>(below));
}

Interval ratio_of(const std::vector<Generation>& generations, double confidence, uint64_t seed) {
  std::vector<std::vector<double>> ratios;
  for (const auto& g : generations) {
    if (g.empty()) continue;
    auto& r = ratios.emplace_back();
    for (const Pair& p : g) r.push_back(p.first / p.second);
  }
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (ratios.empty()) return {kNone, kNone, kNone};
  std::vector<double> of_process, drawn, all;
  for (const auto& r : ratios) drawn = r, of_process.push_back(median(drawn));
  const auto medians = of_process;
  Interval found{.middle = median(of_process)};
  uint64_t words = 0;
  const auto pick = [&](size_t n) { return static_cast<size_t>(random_word(seed, words++) % n); };
  for (size_t s = 0; s < kResamples; ++s) {
    of_process.clear();
    for (size_t i = 0; i < ratios.size(); ++i) {
      const auto& r = ratios[pick(ratios.size())];
      drawn.resize(r.size());
      for (double& d : drawn) d = r[pick(r.size())];
      of_process.push_back(median(drawn));
    }
    all.push_back(median(of_process));
  }
  found.low = quantile(all, (1 - confidence) / 2), found.high = quantile(all, (1 + confidence) / 2);
  if (medians.size() > 1) widen(found, medians, confidence);
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
