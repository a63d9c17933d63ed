#include <gtest/gtest.h>

#include <random>

#include "test_backends.h"
#include "weft/backends.h"
#include "weft/jit.h"
#include "weft/ledger.h"
#include "weft/ops.h"

// Products of 8-bit integers on native, around the sizes at which it takes another way: sums are exact, and
// are scaled in the order that the op's definition has, so the bits are known.
namespace weft::testing::int8_product_test {
namespace {

struct Sizes {
  int64_t m, n, k;
  bool each_scale, bias;
};

// The operands, and what their product is.
struct Case {
  std::vector<int64_t> a, b;
  std::vector<float> a_scale, b_scale, bias, want;
};
Case drawn(const Sizes& s, int64_t low, int64_t high) {
  std::mt19937 random{7};
  const auto integer = [&] { return low + static_cast<int64_t>(random()) % (high - low + 1); };
  const auto real = [&](double from) { return static_cast<float>(from + 0x1p-24 * (random() >> 8)); };
  Case c;
  for (int64_t i = 0; i < s.m * s.k; ++i) c.a.push_back(integer());
  for (int64_t i = 0; i < s.n * s.k; ++i) c.b.push_back(integer());
  for (int64_t i = 0; i < (s.each_scale ? s.m : 1); ++i) c.a_scale.push_back(real(0.1));
  for (int64_t i = 0; i < (s.each_scale ? s.n : 1); ++i) c.b_scale.push_back(real(0.1));
  for (int64_t i = 0; i < (s.bias ? s.n : 0); ++i) c.bias.push_back(real(-0.5));
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      int64_t sum = 0;
      for (int64_t q = 0; q < s.k; ++q)
        sum += c.a[static_cast<size_t>(i * s.k + q)] * c.b[static_cast<size_t>(j * s.k + q)];
      float y = static_cast<float>(sum);
      y *= c.a_scale[static_cast<size_t>(s.each_scale ? i : 0)];
      y *= c.b_scale[static_cast<size_t>(s.each_scale ? j : 0)];
      volatile float scaled = y;  // no multiply-add: each step is rounded
      c.want.push_back(s.bias ? scaled + c.bias[static_cast<size_t>(j)] : scaled);
    }
  return c;
}

Tensor bytes(const std::vector<int64_t>& x, std::vector<int64_t> shape) {
  return Tensor::of<int64_t>(x, shape, DType::i8);
}
Tensor floats(const std::vector<float>& x, bool each) {
  const auto n = static_cast<int64_t>(x.size());
  return Tensor::of<float>(x, each ? std::vector<int64_t>{n} : std::vector<int64_t>{}, DType::f32);
}
Tensor product(const Case& c, const Sizes& s, const Tensor& a, const Tensor& b, DType dtype) {
  const Tensor bias = s.bias ? cast(floats(c.bias, true), dtype) : Tensor();
  return scaled_matmul(a, b, floats(c.a_scale, s.each_scale), floats(c.b_scale, s.each_scale), bias, dtype);
}

std::string text_of(const Sizes& s) {
  return fmt::format("m {} n {} k {} each scale {} bias {}", s.m, s.n, s.k, s.each_scale, s.bias);
}

class Int8Product : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!is_backend_available("native")) GTEST_SKIP() << "native is not available here";
  }
};

TEST_F(Int8Product, IsExactForAnySizes) {
  const OnBackend native("native");
  for (const int64_t m : {1, 3, 4, 5, 8, 9, 37})
    for (const int64_t k : {1, 3, 4, 63, 64, 131, 300})
      for (const int64_t n : {1, 15, 16, 33, 48, 49, 100})
        for (const bool more : {false, true}) {
          const Sizes s{m, n, k, more, more};
          const Case c = drawn(s, -128, 127);
          const Tensor y = product(c, s, bytes(c.a, {m, k}), bytes(c.b, {n, k}), DType::f32);
          EXPECT_EQ(y.to_vector<float>(), c.want) << text_of(s);
        }
}

// More rows and columns than are packed at a time; their sums are far beyond 2^24.
TEST_F(Int8Product, LargeOnesAreMadeInPieces) {
  const OnBackend native("native");
  for (const auto& [low, high] : {std::pair{-128, 127}, std::pair{-128, -128}}) {
    const Sizes s{41, 70, 65000, true, false};
    const Case c = drawn(s, low, high);
    const Tensor y = product(c, s, bytes(c.a, {s.m, s.k}), bytes(c.b, {s.n, s.k}), DType::f32);
    EXPECT_EQ(y.to_vector<float>(), c.want) << low;
  }
}

TEST_F(Int8Product, SumsUpToWhatAnIntegerHolds) {
  const OnBackend native("native");
  for (const int64_t m : {1, 6}) {  // in place, and packed
    const Sizes s{m, 2, (1 << 17) - 1, false, false};
    const Case c = drawn(s, -128, -128);
    EXPECT_EQ(product(c, s, bytes(c.a, {m, s.k}), bytes(c.b, {2, s.k}), DType::f32).to_vector<float>(),
              c.want);
  }
}

TEST_F(Int8Product, LongerSumsAreThoseOfFloats) {
  const OnBackend native("native");
  const Sizes s{1, 1, 1 << 17, false, false};
  const Case c = drawn(s, -128, -128);
  reset_ledger();
  const double y = product(c, s, bytes(c.a, {1, s.k}), bytes(c.b, {1, s.k}), DType::f32).item();
  EXPECT_NEAR(y, c.want[0], c.want[0] * 1e-3);
  for (const LedgerRow& row : ledger_rows()) EXPECT_NE(row.op, "scaled_matmul") << row.kernel;
}

TEST_F(Int8Product, HalvesAreRoundedOnceMore) {
  const OnBackend native("native");
  for (const DType t : {DType::f16, DType::bf16})
    for (const int64_t m : {2, 19}) {
      const Sizes s{m, 53, 30, true, false};
      const Case c = drawn(s, -20, 20);
      const Tensor y = product(c, s, bytes(c.a, {m, s.k}), bytes(c.b, {s.n, s.k}), t);
      const Tensor want = cast(Tensor::of<float>(c.want, std::vector{m, s.n}, DType::f32), t);
      EXPECT_EQ(y.to_bytes(), want.to_bytes()) << name(t) << m;
    }
}

// b comes packed: as a weight, and as one of a program for any number of rows.
TEST_F(Int8Product, AWeightIsPackedOnce) {
  const OnBackend native("native");
  for (const int64_t m : {1, 7, 20}) {
    const Sizes s{m, 101, 67, true, true};
    const Case c = drawn(s, -128, 127);
    const Tensor b = bytes(c.b, {s.n, s.k}), a = bytes(c.a, {m, s.k});
    const auto f = [&](const std::vector<Tensor>& x) {
      return std::vector{product(c, s, x[0], b, DType::f32)};
    };
    auto program = compile(f, {{"x", {DType::i8, {m, s.k}}}}, {.backend = "native"});
    reset_ledger();
    EXPECT_EQ(program({a})[0].to_vector<float>(), c.want) << m;
    bool ran = false;
    for (const LedgerRow& row : ledger_rows())
      ran |= row.kernel.find("scaled_matmul.int8") != std::string::npos;
    EXPECT_TRUE(ran) << ledger_text();
  }
}

}  // namespace
}  // namespace weft::testing::int8_product_test
