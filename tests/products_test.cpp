#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/thread_pool.h"
#include "weft/ops.h"

// Products whose sizes no tile divides, of numbers whose sums are exact in any order.
namespace weft::products_test {
namespace {

class Products : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_thread_count(GetParam()); }
  void TearDown() override { set_thread_count(0); }

  int64_t size(int64_t most) {
    std::uniform_real_distribution<double> log(0, std::log(static_cast<double>(most)));
    return std::llround(std::exp(log(random_)));
  }
  bool coin() { return random_() % 2 == 0; }
  std::vector<double> whole_numbers(int64_t n) {
    std::uniform_int_distribution<int> small(-4, 4);
    std::vector<double> x(static_cast<size_t>(n));
    for (double& v : x) v = small(random_);
    return x;
  }

 private:
  std::mt19937_64 random_{16};
};

Tensor on_native(const std::vector<double>& x, std::vector<int64_t> shape, DType dtype) {
  const Tensor wide = Tensor::of(std::span<const double>(x), shape, DType::f64);
  return cast(wide.to("native"), dtype);
}

TEST_P(Products, OfAnySizesAreExactWhereSumsAre) {
  for (int i = 0; i < 240; ++i) {
    // Sizes of a tile, or of some blocks; one of them is large.
    const int64_t m = size(i % 3 == 0 ? 700 : 60), n = size(i % 3 == 1 ? 700 : 110),
                  k = size(i % 3 == 2 ? 1500 : 100);
    const bool ta = coin(), tb = coin(), with_bias = coin();
    const DType dtype = i % 4 ? DType::f32 : DType::f64;
    const auto a = whole_numbers(m * k), b = whole_numbers(k * n), bias = whole_numbers(n);
    std::vector<double> product(static_cast<size_t>(m * n), 0), sum = product;
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < n; ++c) {
        double& total = product[static_cast<size_t>(r * n + c)];
        for (int64_t q = 0; q < k; ++q)
          total += a[static_cast<size_t>(ta ? q * m + r : r * k + q)] *
                   b[static_cast<size_t>(tb ? c * k + q : q * n + c)];
        sum[static_cast<size_t>(r * n + c)] = total + (with_bias ? bias[static_cast<size_t>(c)] : 0);
      }
    const Tensor x = on_native(a, ta ? std::vector{k, m} : std::vector{m, k}, dtype),
                 w = on_native(b, tb ? std::vector{n, k} : std::vector{k, n}, dtype);
    EXPECT_EQ(matmul(x, w, ta, tb).to_vector<double>(), product)
        << m << " x " << n << " x " << k << (ta ? ", a turned" : "") << (tb ? ", b turned" : "");
    if (ta || !tb) continue;
    EXPECT_EQ(linear(x, w, with_bias ? on_native(bias, {n}, dtype) : Tensor()).to_vector<double>(), sum)
        << m << " x " << n << " x " << k << (with_bias ? ", with a bias" : "");
  }
}

INSTANTIATE_TEST_SUITE_P(OneAndThree, Products, ::testing::Values(1, 3));

}  // namespace
}  // namespace weft::products_test
