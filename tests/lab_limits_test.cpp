#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lab/kernels/contest.h"
#include "lab/kernels/device_probe.h"
#include "lab/kernels/turn.h"
#include "lab/results/device_limits.h"
#include "lab/results/result.h"
#include "seam/registry.h"
#include "weft/backends.h"

// Clocks that the lab watches while it measures, and the limits of devices that results are compared with.
namespace weft::lab::lab_limits_test {
namespace {

Row row_with_clock(std::vector<double> clock) {
  Row row;
  row.clock = std::move(clock);
  return row;
}

TEST(LabClock, ThatOfTheProcessorIsTold) {
  // The counter of a processor ticks about as often as its clock: a chain takes about a tick a step.
  const auto ticks_a_step = static_cast<double>(chain_ticks()) / static_cast<double>(kChain);
  EXPECT_GT(ticks_a_step, 0.02);
  EXPECT_LT(ticks_a_step, 4);
}

TEST(LabClock, WordsWhereItFell) {
  EXPECT_EQ(clock_in_words(row_with_clock({})), "");
  EXPECT_EQ(clock_in_words(row_with_clock(std::vector<double>(20, 3.2))), "");
  auto falls = std::vector<double>(20, 3.0);
  falls[3] = falls[8] = falls[15] = 2.4;
  EXPECT_EQ(clock_in_words(row_with_clock(falls)), "; the clock fell to 0.80 in a tenth of the turns");
}

class LabDeviceLimits : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!is_backend_available("opencl")) GTEST_SKIP() << "opencl is not available here";
  }
  static seam::Device& opencl() { return *value_or_raise(seam::registry().open("opencl")); }
};

TEST_F(LabDeviceLimits, AllUnitsComputeMoreThanAChain) {
  const auto queue = value_or_raise(opencl().open_queue());
  if (!queue->has_stamps()) GTEST_SKIP() << "no clock";
  const auto probe = value_or_raise(DeviceProbe::create(*queue));
  const double chain = value_or_raise(probe->chain());
  EXPECT_GT(chain, 0.01);
  EXPECT_LT(chain, 8) << "a multiply-add takes a cycle at least";
  EXPECT_GT(value_or_raise(probe->all_units()), 2 * chain);
}

TEST_F(LabDeviceLimits, RowsOfADeviceAreComparedWithItsOwn) {
  auto limits = measure_limits(opencl(), {DType::f32});
  ASSERT_TRUE(limits);
  EXPECT_GT(limits->copy, 0);
  EXPECT_GT(limits->gigaflops, 0);
  EXPECT_EQ(limits->peak(DType::f16), limits->gigaflops) << "no products of f16 were measured";
  limits->products["f16"] = 3 * limits->gigaflops;
  EXPECT_EQ(limits->peak(DType::f16), 3 * limits->gigaflops);
  EXPECT_EQ(limits->peak(DType::f32), limits->gigaflops);

  const Operation softmax{"softmax", "a small one", {.inputs = {conformance::normal({96, 64})}}, DType::f32};
  Comparison c{.operation = softmax, .work = value_or_raise(work_of(softmax))};
  c.rows.resize(2);
  for (Row& row : c.rows) row.nanoseconds = {1000, 1000}, row.device = "opencl";
  c.rows[1].device = "elsewhere", c.rows[0].clock = {2, 2};
  Setting setting;
  setting.machine.device_limits["opencl"] = *limits;
  const auto result = result_of(c, {}, setting);
  EXPECT_NEAR(result["rows"][0]["share_of_bandwidth"], c.work.bytes / 1000 / limits->copy, 1e-9);
  EXPECT_NEAR(result["rows"][0]["share_of_peak"], c.work.flops / 1000 / limits->gigaflops, 1e-9);
  EXPECT_EQ(result["rows"][0]["clock"]["median"], 2);
  EXPECT_FALSE(result["rows"][1].contains("share_of_peak")) << "nobody has measured that device";
}

TEST_F(LabDeviceLimits, AProductIsMeasuredByTheDevicesOwnKernel) {
  // PoCL's products are slow: of 512 rows they take long enough not to be asked of 4096.
  const auto limits = measure_limits(opencl(), {DType::f16});
  ASSERT_TRUE(limits);
  EXPECT_GT(limits->products.at("f16"), 0);
}

TEST_F(LabDeviceLimits, AContestKeepsItsClockAndDevice) {
  ContestOptions options;
  options.process.command = {WEFT_BINARY_DIR "/weft", "lab", "--worker", "--threads", "1"};
  options.quick = true, options.seconds = 0, options.sample = 2e-4;
  const Operation softmax{
      "softmax", "a small one", {.inputs = {conformance::normal({96, 64})}}, DType::f32, {{{0}, 0}}};
  const auto found = value_or_raise(
      compare(softmax, {"native", "native.softmax.rows", "opencl"}, options, [](const std::string&) {}));
  for (const Row& row : found.rows) {
    EXPECT_FALSE(row.out()) << row.why;
    EXPECT_EQ(row.device, row.contender == "opencl" ? "opencl" : "");
    ASSERT_EQ(row.clock.size(), row.nanoseconds.size()) << row.contender;
    for (const double clock : row.clock) {
      EXPECT_GT(clock, 0) << row.contender << ": a busy machine makes it small";
      EXPECT_LT(clock, 8) << row.contender << ": more GHz than processors have";
    }
  }
}

}  // namespace
}  // namespace weft::lab::lab_limits_test
