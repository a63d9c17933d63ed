#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "conformance/run.h"

// Functions of one number over the whole range of f32: 256 numbers from each power of two and sign, including
// its ends, and NaNs and infinities. The cases of an op have only a few dozen numbers.
namespace weft::conformance::every_float_test {
namespace {

Array numbers_of_every_exponent() {
  Array a{DType::f32, {}, {}};
  uint32_t mantissa = 12345;
  for (uint32_t high = 0; high < 512; ++high)
    for (uint32_t i = 0; i < 256; ++i) {
      mantissa = mantissa * 1664525u + 1013904223u;
      const uint32_t low = i == 0 ? 0u : i == 1 ? 1u : i == 2 ? 0x7fffffu : mantissa >> 9;
      a.v.push_back(std::bit_cast<float>(high << 23 | low));
    }
  a.shape = {static_cast<int64_t>(a.v.size())};
  return a;
}

class EveryFloat : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryFloat, IsWithinTheBound) {
  const ir::OpDef& op = *ir::find_op(GetParam());
  const Array x = numbers_of_every_exponent();
  const auto bounded = value_or_raise(bound_op(op, op.defaults(), {x}));
  for (const char* backend : {"native", "reference"}) {
    const Outcome run = run_op(op, op.defaults(), {x}, backend);
    ASSERT_EQ(run.outputs.size(), 1u) << backend << ": " << run.refused;
    const Verdict v = judge(run.outputs[0], bounded[0]);
    EXPECT_TRUE(v.ok) << backend << ": " << v.reason;
  }
}
INSTANTIATE_TEST_SUITE_P(Functions, EveryFloat,
                         ::testing::Values("abs", "ceil", "cos", "erf", "exp", "expm1", "floor", "gelu",
                                           "isfinite", "log", "log1p", "neg", "reciprocal", "relu", "round",
                                           "rsqrt", "sigmoid", "sign", "silu", "sin", "softplus", "sqrt",
                                           "square", "tanh", "trunc"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace weft::conformance::every_float_test
