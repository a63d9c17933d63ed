#include "weft/lists.h"

#include <gtest/gtest.h>

#include <cmath>

#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ledger.h"
#include "weft/ops.h"

namespace weft::lists_test {
namespace {

Tensor row(double first, int64_t n) {
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(first + static_cast<double>(i));
  return Tensor::of(std::span<const double>(v), std::span(&n, 1), DType::f64);
}

// 70 tensors go through two levels.
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

TEST(Lists, AConcatOf32IsOneCall) {
  for (const auto& backend : testing::backends({"reference", "native", "far", "opencl"})) {
    SCOPED_TRACE(backend);
    std::vector<Tensor> parts;
    std::vector<float> all;
    for (int i = 0; i < 32; ++i) {
      const std::vector<float> v(static_cast<size_t>(1 + i % 3), static_cast<float>(i));
      parts.push_back(Tensor::of(std::span<const float>(v), IntList{static_cast<int64_t>(v.size())},
                                 DType::f32, backend));
      all.insert(all.end(), v.begin(), v.end());
    }
    reset_ledger();
    EXPECT_EQ(concat(parts).to_vector<float>(), all);
    uint64_t calls = 0;
    for (const auto& row : ledger_rows())
      if (row.op == "concat") calls += row.calls;
    EXPECT_EQ(calls, 1u);
    auto program = compile(
        [&](const std::vector<Tensor>& in) {
          std::vector<Tensor> changed;
          for (const Tensor& t : in) changed.push_back(t + 1.0);
          return std::vector{concat(changed)};
        },
        [&] {
          std::vector<InputSpec> specs;
          for (size_t i = 0; i < parts.size(); ++i) specs.push_back({fmt::format("x{}", i), parts[i].type()});
          return specs;
        }(),
        {.backend = backend});
    for (float& v : all) v += 1;
    EXPECT_EQ(program(parts)[0].to_vector<float>(), all);
  }
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
  EXPECT_EQ(global_norm(list).item(), 13);
  EXPECT_EQ(clip_by_norm(list[1], global_norm(list), 6.5, 0).to_vector<double>(),
            (std::vector<double>{0, 2, 6}));
  EXPECT_EQ(small.tensors[1].to_vector<double>(), (std::vector<double>{0, 4, 12}));
  const Tensor heavy[] = {Tensor::of({60000, 60000}, {2}, DType::f16)};  // squares that no f16 holds
  EXPECT_NEAR(clip_global_norm(heavy, 1).norm.item(), 60000 * std::sqrt(2.0), 100);
}

}  // namespace
}  // namespace weft::lists_test
