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

}  // namespace
}  // namespace weft
