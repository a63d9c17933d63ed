#include <gtest/gtest.h>

#include <cmath>

#include "weft/ops.h"

namespace weft::draws_test {
namespace {

// Moments of many draws, which show a wrong tail or a lost bit.
TEST(Draws, HaveTheMomentsTheyShould) {
  const int64_t n = 40000;
  for (const DType t : {DType::f64, DType::f32}) {
    const Tensor state = Tensor::of({7, 0}, {2}, DType::u64);
    const auto mean_of = [](const Tensor& x) { return mean(x).item(); };
    const Tensor u = uniform(state, -1, 3, {n}, t), z = normal(state, 2, 0.5, {n}, t);
    EXPECT_EQ(state.to_vector<double>()[1], t == DType::f64 ? 60000 : 30000);
    EXPECT_NEAR(mean_of(u), 1, 5 * std::sqrt(16.0 / 12 / n));
    EXPECT_NEAR(variance(u).item(), 16.0 / 12, 0.02);
    EXPECT_GE(min(u).item(), -1);
    EXPECT_LT(max(u).item(), 3);
    const Tensor c = div(sub(z, Tensor::scalar(2, t)), Tensor::scalar(0.5, t)), c2 = mul(c, c);
    EXPECT_NEAR(mean_of(c), 0, 5 / std::sqrt(double(n)));
    EXPECT_NEAR(mean_of(c2), 1, 5 * std::sqrt(2.0 / n));
    EXPECT_NEAR(mean_of(mul(c2, c)), 0, 5 * std::sqrt(15.0 / n));
    EXPECT_NEAR(mean_of(mul(c2, c2)), 3, 5 * std::sqrt(96.0 / n));
  }
}

}  // namespace
}  // namespace weft::draws_test
