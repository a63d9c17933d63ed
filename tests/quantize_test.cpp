#include "weft/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "weft/ops.h"

// 8-bit floats with scales, and products of them, against the numbers that they were made of.
namespace weft::testing::quantize_test {
namespace {

std::vector<float> numbers(int64_t rows, int64_t columns, double first) {
  std::vector<float> x(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] =
        static_cast<float>(std::sin(first + 0.37 * static_cast<double>(i)) * std::pow(10., double(i) / 40));
  return x;
}
Tensor matrix(const std::vector<float>& x, int64_t rows, int64_t columns) {
  return Tensor::of<float>(x, std::vector{rows, columns}, DType::f32);
}
Tensor tensor(const std::vector<float>& x, const std::vector<int64_t>& shape) {
  return Tensor::of<float>(x, shape, DType::f32);
}

TEST(Quantize, RowsComeBackWithinHalfAUnit) {
  constexpr int64_t kRows = 3, kColumns = 32;
  const std::vector<float> x = numbers(kRows, kColumns, 1);
  // e4m3 has 3 bits behind the point of a normal number, and of subnormal ones units of 2^-9; e5m2 2 and
  // 2^-16.
  for (const auto& [dtype, most, bits, least] :
       {std::tuple{DType::f8e4m3, 448., 4, 0x1p-10}, std::tuple{DType::f8e5m2, 57344., 3, 0x1p-17}}) {
    const Quantized q = quantize_rows(matrix(x, kRows, kColumns), dtype);
    ASSERT_EQ(q.values.dtype(), dtype);
    ASSERT_EQ(q.scale.rank(), 1);
    ASSERT_EQ(q.scale.sizes()[0], kRows);
    const auto values = cast(q.values, DType::f32).to_vector<float>(), scale = q.scale.to_vector<float>();
    for (size_t i = 0; i < x.size(); ++i) {
      const double s = scale[i / kColumns], error = std::abs(x[i] - values[i] * s);
      EXPECT_LE(error, (std::ldexp(std::abs(x[i]), -bits) + least * s) * (1 + 1e-5)) << i << name(dtype);
      EXPECT_LE(std::abs(values[i]), most);
    }
    for (int64_t r = 0; r < kRows; ++r) {
      float largest = 0;
      for (int64_t c = 0; c < kColumns; ++c)
        largest = std::max(largest, std::abs(values[static_cast<size_t>(r * kColumns + c)]));
      EXPECT_EQ(largest, most);
    }
  }
}

TEST(Quantize, OneScaleForAll) {
  const Quantized q = quantize(tensor({-896, 2, 0, 448}, {2, 2}));
  EXPECT_EQ(q.scale.rank(), 0);
  EXPECT_EQ(q.scale.to_vector<float>(), std::vector<float>{2});
  EXPECT_EQ(cast(q.values, DType::f32).to_vector<float>(), (std::vector<float>{-448, 1, 0, 224}));
}

TEST(Quantize, ZerosAndWhatIsNotFinite) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Quantized q = quantize_rows(tensor({0, 0, 1, inf, nan, 2, 1e-42f, -1e-42f}, {4, 2}));
  const auto back = mul(cast(q.values, DType::f32), reshape(q.scale, {4, 1})).to_vector<float>();
  EXPECT_EQ(back[0], 0);
  EXPECT_EQ(back[1], 0);
  for (size_t i = 2; i < 6; ++i) EXPECT_TRUE(std::isnan(back[i])) << i;
  // Far below what a scale can be, a number is lost, and nothing is infinite.
  for (size_t i = 6; i < 8; ++i) EXPECT_LE(std::abs(back[i]), 2e-42f) << i;
}

TEST(Quantize, RefusesWithAReason) {
  const Tensor x = tensor({1, 2}, {1, 2});
  EXPECT_THROW((void)quantize(x, DType::bf16), Error);
  EXPECT_THROW((void)quantize(cast(x, DType::i32)), Error);
  EXPECT_THROW((void)quantize_rows(Tensor::scalar(1.)), Error);
}

// Each factor is off by at most 2^-4 of itself, where it is not small beside its row's largest.
TEST(Quantize, AProductOfThemIsThatOfTheNumbers) {
  constexpr int64_t m = 5, n = 4, k = 64;
  const auto x = numbers(m, k, 2), w = numbers(n, k, 3);
  const Quantized a = quantize_rows(matrix(x, m, k)), b = quantize_rows(matrix(w, n, k));
  const auto y = scaled_matmul(a.values, b.values, a.scale, b.scale).to_vector<float>();
  const auto sa = a.scale.to_vector<float>(), sb = b.scale.to_vector<float>();
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, most = 0;
      for (int64_t l = 0; l < k; ++l) {
        const double p = x[static_cast<size_t>(i * k + l)], q = w[static_cast<size_t>(j * k + l)];
        const double of_p = std::abs(p) / 16 + 0x1p-10 * sa[static_cast<size_t>(i)],
                     of_q = std::abs(q) / 16 + 0x1p-10 * sb[static_cast<size_t>(j)];
        sum += p * q, most += of_p * std::abs(q) + of_q * std::abs(p) + of_p * of_q;
      }
      EXPECT_LE(std::abs(y[static_cast<size_t>(i * n + j)] - sum), most * 1.001) << i << " " << j;
    }
}

TEST(Quantize, TheProductHasNoGradient) {
  Tensor scale = Tensor::scalar(1.);
  scale.requires_grad(true);
  const Quantized q = quantize(tensor({1, 2}, {1, 2}));
  try {
    const Tensor y = sum(scaled_matmul(q.values, q.values, scale, Tensor::scalar(1.)));
    y.backward();
    FAIL() << "a gradient was made";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("scaled_matmul"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace weft::testing::quantize_test
