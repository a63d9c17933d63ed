#include <gtest/gtest.h>

#include <cmath>

#include "lab/kernels/statistics.h"
#include "weft/random.h"

// What measured times say, and how sure it is.
namespace weft::lab::lab_statistics_test {
namespace {

// Of pairs whose first takes `factor` times as long, in processes that differ and on a machine that is noisy.
std::vector<double> drawn_ratios(double factor, size_t processes, size_t pairs, double noise, uint64_t seed) {
  uint64_t words = 0;
  const auto draw = [&] { return unit(random_word(seed, words++)) - 0.5; };
  std::vector<double> all;
  for (size_t p = 0; p < processes; ++p) {
    const double process = 1 + 0.004 * draw();
    Generation g;
    for (size_t i = 0; i < pairs; ++i) {
      const double machine = 1 + draw(), slow = unit(random_word(seed, words++)) < 0.1 ? 3 : 1;
      g.push_back({factor * process * machine * (1 + noise * draw()) * slow, machine * (1 + noise * draw())});
    }
    all.push_back(middle_of(g));
  }
  return all;
}

TEST(LabStatistics, AQuantileLiesBetweenTheValuesAroundIt) {
  EXPECT_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(quantile({4, 1, 2, 3}, 0.5), 2.5);
  EXPECT_EQ(quantile({1, 2}, 0), 1);
  EXPECT_EQ(quantile({1, 2}, 1), 2);
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
}

TEST(LabStatistics, AVerdictGoesByTheIntervalAndTheMargin) {
  EXPECT_EQ(decide({0.99, 1.0, 1.01}, 0.015), Verdict::same);
  EXPECT_EQ(decide({1.01, 1.03, 1.05}, 0.015), Verdict::faster);
  EXPECT_EQ(decide({0.95, 0.97, 0.99}, 0.015), Verdict::slower);
  EXPECT_EQ(decide({0.97, 1.0, 1.03}, 0.015), Verdict::undecided);
  EXPECT_EQ(decide({1.001, 1.01, 1.02}, 0.015), Verdict::undecided) << "faster, by less than the margin";
  EXPECT_EQ(decide({NAN, NAN, NAN}, 0.015), Verdict::undecided);
}

TEST(LabStatistics, EqualKernelsAreTheSameAndSlowerOnesSlower) {
  int same = 0, slower = 0, wrong = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const auto equal = decide(ratio_of(drawn_ratios(1, 12, 10, 0.02, seed), 0.99, seed), 0.015);
    const auto planted = decide(ratio_of(drawn_ratios(1 / 1.03, 12, 10, 0.02, seed), 0.99, seed), 0.015);
    same += equal == Verdict::same, slower += planted == Verdict::slower;
    wrong += equal == Verdict::faster || planted == Verdict::faster || planted == Verdict::same;
  }
  EXPECT_GE(same, 95);
  EXPECT_GE(slower, 95);
  EXPECT_EQ(wrong, 0);
}

TEST(LabStatistics, StudentsTIsThatOfTables) {
  EXPECT_NEAR(student(0.99, 1), 63.657, 1e-3);
  EXPECT_NEAR(student(0.99, 2), 9.925, 1e-3);
  EXPECT_NEAR(student(0.95, 5), 2.571, 1e-3);
  EXPECT_NEAR(student(0.99, 7), 3.499, 1e-3);
  EXPECT_NEAR(student(0.998, 30), 3.385, 1e-3);
}

// Two of twelve processes had a neighbor that took half of their cache.
TEST(LabStatistics, OutliersMoveNothing) {
  std::vector<double> all = {0.999, 1.001, 1.002, 0.998, 1.0, 1.001, 0.999, 1.0, 1.002, 0.998, 0.6, 1.7};
  const Interval found = ratio_of(all, 0.99, 1);
  EXPECT_NEAR(found.middle, 1, 1e-3);
  EXPECT_EQ(decide(found, 0.015), Verdict::same);
  // Half of them are no outliers.
  for (size_t i = 0; i < 6; ++i) all[i] *= 1.2;
  EXPECT_EQ(decide(ratio_of(all, 0.99, 1), 0.015), Verdict::undecided);
}

// By hand: of ten values two are left out at either end, and the standard error of the rest is
// sqrt(winsorized squares * 10 / 9) / 6. At this confidence the bootstrap's ends are within it.
TEST(LabStatistics, TheIntervalIsYuensWhereThatIsWider) {
  std::vector<double> all;
  for (const double x : {-9.0, -3.0, -2.0, -2.0, -1.0, 1.0, 2.0, 2.0, 3.0, 9.0})
    all.push_back(std::exp(x / 100));
  const double squares = 6 * 4 + 2 * 1 + 2 * 4,
               half = student(0.9999, 5) * std::sqrt(squares * 10 / 9) / 6 / 100;
  const Interval found = ratio_of(all, 0.9999, 1);
  EXPECT_NEAR(found.middle, std::cosh(0.01), 1e-12);
  EXPECT_NEAR(std::log(found.high), half, 1e-9);
  EXPECT_NEAR(std::log(found.low), -half, 1e-9);
}

// Three processes that differ by tens of percents: a bootstrap of them alone finds a difference in one of
// four.
TEST(LabStatistics, OfAFewProcessesThatDifferNothingIsSure) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::vector<double> all;
    for (uint64_t p = 0; p < 3; ++p) all.push_back(1 + 0.4 * (unit(random_word(seed, p)) - 0.5));
    const auto verdict = decide(ratio_of(all, 0.99, seed), 0.015);
    found += verdict == Verdict::faster || verdict == Verdict::slower;
  }
  EXPECT_LE(found, 6);
}

}  // namespace
}  // namespace weft::lab::lab_statistics_test
