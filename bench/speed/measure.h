#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// Two ways to do one task, timed in turns in one run, with results compared.
namespace weft::speed {

struct Task {
  std::function<void()> run;
  std::function<std::vector<float>()> result = {};  ///< of the last run; empty: not compared
  std::function<void()> before = {};                ///< not timed: called before each round of runs
};

struct Measured {
  double ours = 0, peer = 0;  ///< seconds, medians
  double ratio = 0;           ///< median over the rounds of peer / ours: above 1 we are faster
  double low = 0, high = 0;   ///< quartiles of it
  double difference = 0;      ///< largest |ours - peer| over largest |peer|
};

/// Rounds of `seconds` each, ours and the peer's by turns, after one of each to warm up.
Measured measure(const Task& ours, const Task& peer, double seconds = 0.05, int rounds = 9);
/// Median seconds of one run.
double time_of(const Task& task, double seconds = 0.05, int rounds = 9);
double geometric_mean(const std::vector<double>& v);
double median(std::vector<double> v);

}  // namespace weft::speed
