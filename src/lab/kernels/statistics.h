#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

// What measured times say, and how sure it is.
namespace weft::lab {

/// A number, and the interval in which it lies at the asked confidence.
struct Interval {
  double low = 0, middle = 0, high = 0;
};

/// Value at `share` of the sorted values, 0 to 1; NaN of none.
double quantile(std::vector<double> values, double share);

/// By how many standard errors a mean may be off at this confidence, for numbers that are normally
/// distributed and estimates of this many degrees of freedom, at least 1: Student's t, two-sided.
double student(double confidence, size_t degrees);

/// Times of two kernels that ran one after the other.
struct Pair {
  double first = 0, second = 0;
};
/// The pairs of one pair of processes.
using Generation = std::vector<Pair>;

/// By what factor the first takes longer in this process: the median of its pairs' ratios. Pairs cancel what
/// slows the machine for a while.
double middle_of(const Generation& pairs);

/// By what factor the first takes longer, from the middles of the processes, whose places in memory slow all
/// runs of one of them: their median. The interval is a bootstrap's over processes, and at least Yuen's of
/// the logarithms, which is Student's without the outermost fifths: a machine has other guests, and some
/// processes meet them.
///
/// Source   Kalibera and Jones, Rigorous benchmarking in reasonable time (ISMM 2013). Yuen, The two-sample
///          trimmed t for unequal population variances (Biometrika 61, 1974).
Interval ratio_of(const std::vector<double>& processes, double confidence, uint64_t seed);

enum class Verdict : uint8_t { faster, same, slower, undecided, wrong, invalid };
std::string_view name(Verdict verdict);  ///< "FASTER"

/// What the ratio of the baseline's time to a kernel's says of the kernel. SAME: the interval lies within the
/// margin, 1 +- `margin`. FASTER, SLOWER: the interval does not hold 1, and its middle is beyond the margin.
/// Anything else is UNDECIDED.
Verdict decide(const Interval& ratio, double margin);

}  // namespace weft::lab
