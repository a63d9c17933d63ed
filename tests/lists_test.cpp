#include "weft/lists.h"

#include <gtest/gtest.h>

#include <cmath>

#include "weft/ops.h"

namespace weft {
namespace {

Tensor row(double first, int64_t n) {
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(first + static_cast<double>(i));
  return Tensor::of(std::span<const double>(v), std::span(&n, 1), DType::f64);
}

// 70 tensors go through three levels of eight.
TEST(Lists, ConcatTakesAnyNumberAndHandsEachItsGradient) {
  std::vector<Tensor> parts;
  std::vector<double> all;
  for (int i = 0; i < 70; ++i) {
    parts.push_back(row(100.0 * i, 1 + i % 3));
    parts.back().requires_grad(true);
    for (int k = 0; k < 1 + i % 3; ++k) all.push_back(100.0 * i + k);
  }
  const Tensor y = concat(parts);
  EXPECT_EQ(y.to_vector<double>(), all);
  y.backward(mul(y, y).detach());
  for (const auto& p : parts) EXPECT_EQ(p.grad().to_vector<double>(), mul(p, p).to_vector<double>());
  EXPECT_EQ(concat({parts[3]}).to_vector<double>(), parts[3].to_vector<double>());
  EXPECT_THROW((void)concat(std::span<const Tensor>()), Error);
}

TEST(Lists, SplitIsUndoneByConcat) {
  const Tensor x = reshape(row(0, 24), {2, 6, 2});
  const auto parts = split(x, {1, 0, 3, 2}, -2);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[2].shape(), (Shape{2, 3, 2}));
  EXPECT_EQ(parts[2].to_vector<double>(), (std::vector<double>{2, 3, 4, 5, 6, 7, 14, 15, 16, 17, 18, 19}));
  EXPECT_EQ(concat(parts, 1).to_vector<double>(), x.to_vector<double>());
  EXPECT_THROW((void)split(x, {1, 2}, 1), Error);
}

TEST(Lists, ClippingTakesTheNormOfAll) {
  const Tensor list[] = {Tensor::of({3, 0}, {2}), Tensor::of({0, 4, 12}, {3}, DType::f16)};
  const Clipped large = clip_global_norm(list, 6.5, 0), small = clip_global_norm(list, 20);
  EXPECT_EQ(large.norm.item(), 13);
  EXPECT_EQ(large.tensors[0].to_vector<double>(), (std::vector<double>{1.5, 0}));
  EXPECT_EQ(large.tensors[1].to_vector<double>(), (std::vector<double>{0, 2, 6}));
  EXPECT_EQ(large.tensors[1].dtype(), DType::f16);
  EXPECT_EQ(small.tensors[1].to_vector<double>(), (std::vector<double>{0, 4, 12}));
  const Tensor heavy[] = {Tensor::of({60000, 60000}, {2}, DType::f16)};  // squares that no f16 holds
  EXPECT_NEAR(clip_global_norm(heavy, 1).norm.item(), 60000 * std::sqrt(2.0), 100);
}

TEST(Lists, PaddingOfAnEmbeddingGetsNoGradient) {
  Tensor table = reshape(row(0, 6), {3, 2});
  table.requires_grad(true);
  embedding(table, Tensor::of({1, 2, 1}, {3}, DType::i32), 1).backward(reshape(row(1, 6), {3, 2}));
  EXPECT_EQ(table.grad().to_vector<double>(), (std::vector<double>{0, 0, 0, 0, 3, 4}));
}

// Moments of many draws: a wrong tail or a lost bit shows.
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

// What a composite without a rule is differentiated by is ordinary history: it can be shared and repeated.
TEST(Lists, AGradientByDecompositionHasGradients) {
  Tensor x = row(1, 3);
  x.requires_grad(true);
  const Tensor y = mul(x, x);
  mean_square(y).backward(Tensor::scalar(1, DType::f64), true);  // sum(x^4) / 3: 4 x^3 / 3
  const Tensor first = x.grad();
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(first.to_vector<double>()[i], 4.0 / 3 * std::pow(i + 1, 3), 1e-12);
  x.clear_grad();
  sum(first).backward(Tensor::scalar(1, DType::f64), true);  // 4 x^2
  const Tensor second = x.grad();
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(second.to_vector<double>()[i], 4 * std::pow(i + 1, 2), 1e-12);
  x.clear_grad();
  sum(second).backward();  // 8 x
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(x.grad().to_vector<double>()[i], 8.0 * (i + 1), 1e-12);
}

}  // namespace
}  // namespace weft
