#include <gtest/gtest.h>

#include <cmath>

#include "weft/shared/numbers.hpp"
#include "weft/shared/ops/random.hpp"

namespace weft::backend_numbers_test {
using namespace weft::shared;
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Every pattern keeps its value and its bits; the middle of neighbours rounds to the even one, and a number
/// slightly off the middle to the nearer one.
template <class T, class Bits>
void round_trips(Bits greatest_finite) {
  for (uint32_t i = 0; i <= std::numeric_limits<Bits>::max(); ++i) {
    const double v = load(T{static_cast<Bits>(i)});
    ASSERT_EQ(store<T>(v).bits, i) << v;
  }
  for (uint32_t i = 0; i < greatest_finite; ++i) {
    const double low = load(T{static_cast<Bits>(i)}), high = load(T{static_cast<Bits>(i + 1)});
    const double middle = low + (high - low) / 2;
    ASSERT_LT(low, high);
    ASSERT_EQ(store<T>(middle).bits, i + (i & 1)) << low << " " << high;
    ASSERT_EQ(store<T>(std::nextafter(middle, 0.0)).bits, i) << low;
    ASSERT_EQ(store<T>(std::nextafter(middle, kInf)).bits, i + 1) << low;
    ASSERT_EQ(load(store<T>(-middle)), -load(store<T>(middle)));
  }
}

TEST(Numbers, EveryHalfRoundTripsAndRoundsToNearestEven) { round_trips<Half, uint16_t>(0x7bff); }
TEST(Numbers, EveryBFloatRoundTripsAndRoundsToNearestEven) { round_trips<BFloat, uint16_t>(0x7f7f); }

TEST(Numbers, EveryFloat8RoundTrips) {
  for (uint32_t i = 0; i < 256; ++i) {
    const auto bits = static_cast<uint8_t>(i);
    const double a = load(Float8E4M3{bits}), b = load(Float8E5M2{bits});
    EXPECT_EQ(store<Float8E4M3>(a).bits, bits);
    EXPECT_EQ(store<Float8E5M2>(b).bits, bits);
  }
}

TEST(Numbers, KnownHalfValues) {
  EXPECT_EQ(store<Half>(1.0).bits, 0x3c00);
  EXPECT_EQ(store<Half>(1.0 / 3).bits, 0x3555);
  EXPECT_EQ(store<Half>(65504.0).bits, 0x7bff);
  EXPECT_EQ(store<Half>(65519.999).bits, 0x7bff);
  EXPECT_EQ(store<Half>(65520.0).bits, 0x7c00);
  EXPECT_EQ(store<Half>(-kInf).bits, 0xfc00);
  EXPECT_EQ(store<Half>(kNaN).bits, 0x7e00);
  EXPECT_EQ(store<Half>(0x1p-24).bits, 1);
  EXPECT_EQ(store<Half>(0x1p-25).bits, 0);
  EXPECT_EQ(store<Half>(-0.0).bits, 0x8000);
  EXPECT_EQ(store<Half>(1e300).bits, 0x7c00);
  EXPECT_EQ(store<Half>(5e-324).bits, 0);
  // Rounded through f32 this would become exactly 1 + 2^-10 / 2, and then 1.
  EXPECT_EQ(store<Half>(1.0 + 0x1p-11 + 0x1p-40).bits, 0x3c01);
  EXPECT_EQ(store<BFloat>(1.0).bits, 0x3f80);
  EXPECT_EQ(store<BFloat>(3.4e38).bits, 0x7f80);
  EXPECT_EQ(store<BFloat>(kNaN).bits, 0x7fc0);
}

TEST(Numbers, KnownFloat8Values) {
  struct Row {
    double value;
    uint8_t e4m3, e5m2;
  };
  // As PyTorch's float8_e4m3fn and float8_e5m2 have them.
  for (const auto& [value, e4m3, e5m2] : std::initializer_list<Row>{{0.0, 0x00, 0x00},
                                                                    {-0.0, 0x80, 0x80},
                                                                    {1.0, 0x38, 0x3c},
                                                                    {-2.0, 0xc0, 0xc0},
                                                                    {0.1, 0x1d, 0x2e},
                                                                    {448.0, 0x7e, 0x5f},
                                                                    {464.0, 0x7e, 0x5f},
                                                                    {465.0, 0x7f, 0x5f},
                                                                    {480.0, 0x7f, 0x60},
                                                                    {-1e9, 0xff, 0xfc},
                                                                    {0x1p-9, 0x01, 0x18},
                                                                    {0x1p-10, 0x00, 0x14},
                                                                    {57344.0, 0x7f, 0x7b},
                                                                    {61439.0, 0x7f, 0x7b},
                                                                    {61440.0, 0x7f, 0x7c},
                                                                    {kInf, 0x7f, 0x7c},
                                                                    {0x1p-16, 0x00, 0x01},
                                                                    {0x1p-17, 0x00, 0x00}}) {
    EXPECT_EQ(store<Float8E4M3>(value).bits, e4m3) << value;
    EXPECT_EQ(store<Float8E5M2>(value).bits, e5m2) << value;
  }
  EXPECT_TRUE(std::isnan(load(Float8E4M3{0x7f})));
  EXPECT_TRUE(std::isnan(load(store<Float8E5M2>(kNaN))));
  EXPECT_EQ(load(Float8E4M3{0x08}), 0x1p-6);
}

TEST(Numbers, IntegersSaturateWrapAndRoundOnce) {
  EXPECT_EQ(store<int8_t>(300.0), 127);
  EXPECT_EQ(store<int8_t>(-300.0), -128);
  EXPECT_EQ(store<int8_t>(-1.9), -1);
  EXPECT_EQ(store<uint8_t>(-1.9), 0);
  EXPECT_EQ(store<uint8_t>(255.9), 255);
  EXPECT_EQ(store<int32_t>(kNaN), 0);
  EXPECT_EQ(store<int64_t>(0x1p63), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(store<int64_t>(-0x1p63), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(store<uint64_t>(kInf), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(store<uint64_t>(0x1p63), uint64_t{1} << 63);
  EXPECT_EQ(store<uint8_t>(int64_t{-1}), 255);
  EXPECT_EQ(store<Bool>(kNaN).bits, 1);
  // 2^60 + 2^52 is the middle of two bfloats; one more decides, and a double would lose it.
  const int64_t middle = (int64_t{1} << 60) + (int64_t{1} << 52);
  EXPECT_EQ(load(store<BFloat>(middle)), 0x1p60);
  EXPECT_EQ(load(store<BFloat>(middle + 1)), 0x1p60 + 0x1p53);
  EXPECT_EQ(load(store<BFloat>(-middle - 1)), -0x1p60 - 0x1p53);
}

TEST(Philox, KnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

}  // namespace
}  // namespace weft::backend_numbers_test
