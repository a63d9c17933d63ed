#include "weft/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "weft/ops.h"

// 8-bit numbers with scales, and products of them, against the numbers that they were made of.
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

// Integers are evenly far from each other: half a unit is half a scale, wherever a number lies.
TEST(Quantize, RowsOfIntegersComeBackWithinHalfAScale) {
  constexpr int64_t kRows = 3, kColumns = 32;
  const std::vector<float> x = numbers(kRows, kColumns, 1);
  const Quantized q = quantize_rows(matrix(x, kRows, kColumns), DType::i8);
  ASSERT_EQ(q.values.dtype(), DType::i8);
  ASSERT_EQ(q.scale.rank(), 1);
  ASSERT_EQ(q.scale.sizes()[0], kRows);
  const auto values = cast(q.values, DType::i32).to_vector<int32_t>();
  const auto scale = q.scale.to_vector<float>();
  for (size_t r = 0; r < kRows; ++r) {
    int32_t most = 0;
    for (size_t i = r * kColumns; i < (r + 1) * kColumns; ++i) {
      EXPECT_LE(std::abs(x[i] - double{scale[r]} * values[i]), scale[r] * 0.5 * (1 + 1e-5)) << i;
      most = std::max(most, std::abs(values[i]));
    }
    EXPECT_EQ(most, 127);
  }
}

TEST(Quantize, IntegersRoundToNearestEvenAndAreSymmetric) {
  // The largest makes the scale 2: halves of odd numbers lie between two integers.
  const Quantized q = quantize(tensor({-254, 1, 3, 5, -1, -3, -5, 2.5f}, {2, 4}), DType::i8);
  EXPECT_EQ(q.scale.rank(), 0);
  EXPECT_EQ(q.scale.to_vector<float>(), std::vector<float>{2});
  EXPECT_EQ(cast(q.values, DType::i32).to_vector<int32_t>(),
            (std::vector<int32_t>{-127, 0, 2, 2, 0, -2, -2, 1}));
}

TEST(Quantize, ZerosAndWhatIsNotFinite) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const DType dtype : {DType::f8e4m3, DType::i8}) {
    const Quantized q = quantize_rows(tensor({0, 0, 1, inf, nan, 2, 1e-42f, -1e-42f}, {4, 2}), dtype);
    const auto back = mul(cast(q.values, DType::f32), reshape(q.scale, {4, 1})).to_vector<float>();
    EXPECT_EQ(back[0], 0);
    EXPECT_EQ(back[1], 0);
    for (size_t i = 2; i < 6; ++i) EXPECT_TRUE(std::isnan(back[i])) << i << name(dtype);
    // Far below what a scale can be, a number is lost, and nothing is infinite.
    for (size_t i = 6; i < 8; ++i) EXPECT_LE(std::abs(back[i]), 2e-42f) << i << name(dtype);
  }
}

TEST(Quantize, RefusesWithAReason) {
  const Tensor x = tensor({1, 2}, {1, 2});
  EXPECT_THROW((void)quantize(x, DType::bf16), Error);
  EXPECT_THROW((void)quantize(x, DType::u8), Error);
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

// Each factor is off by at most half its row's scale, and the sums of integers are exact.
TEST(Quantize, AProductOfIntegersIsThatOfTheNumbers) {
  constexpr int64_t m = 5, n = 4, k = 64;
  const auto x = numbers(m, k, 2), w = numbers(n, k, 3);
  const Quantized a = quantize_rows(matrix(x, m, k), DType::i8),
                  b = quantize_rows(matrix(w, n, k), DType::i8);
  const auto y = scaled_matmul(a.values, b.values, a.scale, b.scale).to_vector<float>();
  const auto sa = a.scale.to_vector<float>(), sb = b.scale.to_vector<float>();
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      const double of_p = sa[i] * 0.5, of_q = sb[j] * 0.5;
      double sum = 0, most = 0;
      for (size_t l = 0; l < k; ++l) {
        const double p = x[i * k + l], q = w[j * k + l];
        sum += p * q, most += of_p * std::abs(q) + of_q * std::abs(p) + of_p * of_q;
      }
      EXPECT_LE(std::abs(y[i * n + j] - sum), most * 1.001) << i << " " << j;
    }
}

TEST(Quantize, IntegersAndFloatsAreNotMultiplied) {
  const Tensor x = tensor({1, 2}, {1, 2}), one = Tensor::scalar(1.);
  const Quantized i = quantize(x, DType::i8), f = quantize(x);
  try {
    (void)scaled_matmul(i.values, f.values, one, one);
    FAIL() << "a product was made";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("both of i8"), std::string::npos) << e.what();
  }
  EXPECT_THROW((void)scaled_matmul(f.values, i.values, one, one), Error);
  EXPECT_THROW((void)scaled_matmul(cast(x, DType::u8), cast(x, DType::u8), one, one), Error);
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
