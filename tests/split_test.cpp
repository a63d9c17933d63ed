#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/thread_pool.h"
#include "weft/jit.h"
#include "weft/ops.h"

// Compiled products of f32 with a constant matrix, of the sizes at which `native` may split each number.
namespace weft::split_test {
namespace {

constexpr float kInf = HUGE_VALF;

struct Sizes {
  int64_t m, n, k;
};

std::vector<float> normal(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> draw;
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = draw(random);
  return x;
}

Tensor on_native(const std::vector<float>& x, std::vector<int64_t> shape) {
  return Tensor::of(std::span<const float>(x), shape, DType::f32).to("native");
}

/// a wᵀ + bias by a compiled program, whose weights are constants.
std::vector<float> compiled(const std::vector<float>& a, const std::vector<float>& w,
                            const std::vector<float>& bias, Sizes s) {
  const Tensor x = on_native(a, {s.m, s.k}), weight = on_native(w, {s.n, s.k}), b = on_native(bias, {s.n});
  const auto function = [&](const std::vector<Tensor>& in) { return std::vector{linear(in[0], weight, b)}; };
  auto program = compile(function, {{"x", {DType::f32, {s.m, s.k}}}}, {.backend = "native"});
  return program({x})[0].to_vector<float>();
}

/// Each element within sqrt(k) roundings of the sum of magnitudes, or equal where the truth is not finite.
void expect_right(const std::vector<float>& got, const std::vector<float>& a, const std::vector<float>& w,
                  const std::vector<float>& bias, Sizes s) {
  ASSERT_EQ(got.size(), static_cast<size_t>(s.m * s.n));
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = bias[static_cast<size_t>(j)], size = std::fabs(sum);
      for (int64_t q = 0; q < s.k; ++q) {
        const double term = double{a[static_cast<size_t>(i * s.k + q)]} * w[static_cast<size_t>(j * s.k + q)];
        sum += term, size += std::fabs(term);
      }
      const double y = got[static_cast<size_t>(i * s.n + j)], want = static_cast<float>(sum);
      if (!std::isfinite(want)) {
        ASSERT_TRUE(std::isnan(want) ? std::isnan(y) : y == want)
            << i << ", " << j << ": " << y << ", want " << want;
        continue;
      }
      ASSERT_LE(std::fabs(y - sum), std::sqrt(static_cast<double>(s.k)) * 0x1p-24 * size + 0x1p-126)
          << i << ", " << j << " of " << s.m << " x " << s.n << " x " << s.k;
    }
}

void expect_right_of(const std::vector<float>& a, const std::vector<float>& w, Sizes s) {
  const auto bias = normal(s.n, 3);
  expect_right(compiled(a, w, bias, s), a, w, bias, s);
}

class Split : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_thread_count(GetParam()); }
  void TearDown() override { set_thread_count(0); }
};

TEST_P(Split, OfAnySizesAreWithinTheBoundOfF32) {
  for (const Sizes s : {Sizes{48, 512, 32},
                        {64, 128, 128},
                        {49, 545, 33},
                        {128, 130, 127},
                        {257, 161, 109},
                        {600, 65, 300},
                        {65, 17, 2500},
                        {1100, 40, 1030}})
    expect_right_of(normal(s.m * s.k, 1), normal(s.n * s.k, 2), s);
}

TEST_P(Split, OfNumbersOfAllSizesAre) {
  const Sizes s{96, 160, 160};
  auto a = normal(s.m * s.k, 1), w = normal(s.n * s.k, 2);
  std::mt19937_64 random(4);
  for (float& v : a) v = std::ldexp(v, static_cast<int>(random() % 60) - 30);
  for (float& v : w) v = std::ldexp(v, static_cast<int>(random() % 60) - 30);
  expect_right_of(a, w, s);
}

// Rows and columns whose numbers lie beyond what parts can hold, among others.
TEST_P(Split, OfNumbersThatHaveNoPartsAre) {
  const Sizes s{128, 192, 96};
  const auto row = [&](std::vector<float>& x, int64_t i, auto f) {
    for (int64_t q = 0; q < s.k; ++q) {
      float& v = x[static_cast<size_t>(i * s.k + q)];
      v = f(v);
    }
  };
  for (const bool in_a : {true, false}) {
    auto a = normal(s.m * s.k, 1), w = normal(s.n * s.k, 2);
    auto& x = in_a ? a : w;
    row(x, 3, [](float v) { return v * 0x1p-140f; });
    row(x, 40, [](float v) { return std::ldexp(v, 120); });
    row(x, 41, [](float) { return 0.0f; });
    x[static_cast<size_t>(70 * s.k + 5)] = kInf;
    x[static_cast<size_t>(71 * s.k + 6)] = -kInf;
    x[static_cast<size_t>(101 * s.k + 7)] = std::nanf("");
    expect_right_of(a, w, s);
  }
}

TEST_P(Split, OfTwoSidesThatHaveNoPartsAre) {
  const Sizes s{64, 288, 64};
  auto a = normal(s.m * s.k, 1), w = normal(s.n * s.k, 2);
  for (int64_t q = 0; q < s.k; ++q)
    a[static_cast<size_t>(9 * s.k + q)] *= 0x1p-100f, w[static_cast<size_t>(33 * s.k + q)] *= 0x1p100f;
  a[static_cast<size_t>(20 * s.k)] = kInf, w[static_cast<size_t>(200 * s.k)] = 0;
  expect_right_of(a, w, s);
}

struct Windows {
  int64_t images, channels, size, filters, kernel, stride, padding, groups;
};

// Convolutions with constant filters against the same on `reference`, whose sums are f64.
void expect_right_of(const Windows& w, bool beyond) {
  const int64_t channels = w.channels / w.groups;
  auto x = normal(w.images * w.channels * w.size * w.size, 5),
       f = normal(w.filters * channels * w.kernel * w.kernel, 6);
  if (beyond) {
    for (int64_t i = 0; i < channels * w.kernel * w.kernel; ++i) f[static_cast<size_t>(i)] *= 0x1p-100f;
    x[17] = kInf;
  }
  const std::vector<int64_t> shape = {w.images, w.channels, w.size, w.size},
                             filters = {w.filters, channels, w.kernel, w.kernel};
  const auto on = [&](const std::string& backend) {
    const Tensor of = Tensor::of(std::span<const float>(f), filters, DType::f32).to(backend);
    const auto function = [&](const std::vector<Tensor>& in) {
      return std::vector{conv(in[0], of, {w.stride, w.stride}, {w.padding, w.padding, w.padding, w.padding},
                              {1, 1}, w.groups)};
    };
    auto program =
        compile(function, {{"x", {DType::f32, Shape(shape.begin(), shape.end())}}}, {.backend = backend});
    return program({Tensor::of(std::span<const float>(x), shape, DType::f32).to(backend)})[0]
        .to_vector<float>();
  };
  const auto got = on("native"), want = on("reference");
  ASSERT_EQ(got.size(), want.size());
  const auto terms = static_cast<double>(channels * w.kernel * w.kernel);  // of about 1
  const double allowed = std::sqrt(terms) * 0x1p-24 * terms;
  for (size_t i = 0; i < got.size(); ++i)
    if (std::isfinite(want[i]))
      ASSERT_NEAR(got[i], want[i], allowed) << i;
    else
      ASSERT_TRUE(std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i])
          << i << ": " << got[i] << ", " << want[i];
}

TEST_P(Split, OfWindowsAreRight) {
  for (const bool beyond : {false, true})
    for (const Windows& w : {Windows{1, 64, 14, 96, 1, 1, 0, 1},
                             {2, 40, 13, 33, 3, 1, 1, 1},
                             {1, 96, 15, 70, 3, 2, 1, 1},
                             {3, 64, 9, 128, 1, 2, 0, 1},
                             {1, 8, 20, 64, 7, 2, 3, 1},
                             {2, 128, 7, 160, 3, 1, 1, 1},
                             {1, 96, 12, 128, 3, 1, 1, 2}})
      expect_right_of(w, beyond);
}

INSTANTIATE_TEST_SUITE_P(OneAndThree, Split, ::testing::Values(1, 3));

}  // namespace
}  // namespace weft::split_test
