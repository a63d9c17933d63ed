#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "lab/bench.h"
#include "runtime/trace.h"

// How time is measured, and what of it has a name.
namespace weft::testing::bench_test {
namespace {

using namespace std::chrono_literals;

TEST(Bench, WaitsUntilTimeIsSteady) {
  int runs = 0;
  const auto run = [&] {
    std::this_thread::sleep_for(++runs <= 12 ? 8ms : 2ms);  // as caches and clocks warm up
    return Status();
  };
  auto r = lab::bench(run, {.seconds = 0.01, .warm_up = 5});
  ASSERT_TRUE(r.ok());
  EXPECT_GT(r->warm_ups, 12u);
  EXPECT_GE(r->seconds.size(), 20u);
  EXPECT_LT(r->quantile(0.5), 0.006) << "none of the slow ones is measured";
  EXPECT_GE(r->quantile(0), 0.002);
  EXPECT_EQ(static_cast<size_t>(runs), r->warm_ups + r->seconds.size());
}

TEST(Bench, GivesUpWaiting) {
  int runs = 0;
  const auto run = [&] {
    std::this_thread::sleep_for(1ms * (1 + runs++ % 32));  // never steady: each window is slower or faster
    return Status();
  };
  auto r = lab::bench(run, {.seconds = 0.01, .warm_up = 0.05});
  ASSERT_TRUE(r.ok());
  EXPECT_FALSE(r->steady);
  EXPECT_LT(r->warm_ups, 20u);
  EXPECT_EQ(lab::bench([] { return invalid("no"); }, {}).status().message(), "no");
}

TEST(Bench, QuantilesAreMeasuredValues) {
  const lab::BenchResult r{.seconds = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
  EXPECT_EQ(r.quantile(0), 1);
  EXPECT_EQ(r.quantile(0.1), 1);
  EXPECT_EQ(r.quantile(0.5), 5);
  EXPECT_EQ(r.quantile(0.9), 9);
  EXPECT_EQ(r.quantile(0.99), 10);
}

TEST(Trace, OnlyInnermostSpansNameTime) {
  runtime::Trace trace;
  {
    const runtime::Trace::Timed outer(&trace, "run", "run");
    std::this_thread::sleep_for(20ms);
    const runtime::Trace::Timed inner(&trace, "kernel", "k", "node");
    std::this_thread::sleep_for(10ms);
  }
  {
    const runtime::Trace::Timed none(nullptr, "run", "run");
    const runtime::Trace::Timed alone(&trace, "copy", "outputs");
    std::this_thread::sleep_for(5ms);
  }
  const auto& spans = trace.spans();
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[1].where, "node");
  EXPECT_LE(spans[0].start, spans[1].start);
  EXPECT_LE(spans[1].end, spans[0].end);
  const int64_t named = runtime::named_time(trace, trace.now());
  EXPECT_EQ(named, spans[1].end - spans[1].start + spans[2].end - spans[2].start);
  EXPECT_GE(named, 15'000'000);
  EXPECT_EQ(runtime::named_time(trace, spans[2].start), spans[1].end - spans[1].start) << "up to there";
}

}  // namespace
}  // namespace weft::testing::bench_test
