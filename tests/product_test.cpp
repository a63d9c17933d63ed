#include "weft/backend/product.hpp"

#include <gtest/gtest.h>

#include "seam/call.h"

namespace weft::product_test {
namespace {

using Sizes = std::vector<int64_t>;

struct Read {
  backend::Support support;
  backend::Product product;
};

Read read(const char* op, const Sizes& a, const Sizes& b, const Sizes& y,
          const std::vector<std::string>& turned = {}, bool bias = false, DType dtype = DType::f32) {
  const auto type = [&](const Sizes& sizes) {
    return seam::ConcreteType{dtype, IntList(sizes.begin(), sizes.end())};
  };
  seam::CallDesc d;
  d.op = op;
  d.inputs = {type(a), type(b)};
  if (bias) d.inputs.push_back(type({y.back()}));
  d.outputs = {type(y)};
  for (const std::string& name : turned) d.attrs.push_back({name, int64_t{1}});
  const seam::OwnedCall call(d);
  Read r;
  r.support = backend::product_of(backend::OpCall(call.c()), r.product);
  return r;
}

TEST(Product, TakesSizesFromTheAxesThatAreSummed) {
  const auto plain = read("matmul", {2, 3}, {3, 5}, {2, 5});
  ASSERT_TRUE(plain.support);
  EXPECT_EQ((Sizes{plain.product.m, plain.product.n, plain.product.k}), (Sizes{2, 5, 3}));
  const auto turned = read("matmul", {3, 2}, {5, 3}, {2, 5}, {"transpose_a", "transpose_b"});
  ASSERT_TRUE(turned.support);
  EXPECT_EQ((Sizes{turned.product.m, turned.product.n, turned.product.k}), (Sizes{2, 5, 3}));
  EXPECT_TRUE(turned.product.transpose_a && turned.product.transpose_b);
}

TEST(Product, MakesRowsOfABatchThatSharesItsRightFactor) {
  const auto shared = read("matmul", {4, 2, 3}, {3, 5}, {4, 2, 5});
  ASSERT_TRUE(shared.support);
  EXPECT_EQ((Sizes{shared.product.m, shared.product.batch}), (Sizes{8, 1}));
  // Columns of a transposed factor do not follow each other: they stay a batch.
  const auto turned = read("matmul", {4, 3, 2}, {3, 5}, {4, 2, 5}, {"transpose_a"});
  ASSERT_TRUE(turned.support);
  EXPECT_EQ((Sizes{turned.product.batch, turned.product.a_stride, turned.product.b_stride}),
            (Sizes{4, 6, 0}));
}

TEST(Product, StepsThroughABatch) {
  const auto both = read("matmul", {4, 2, 3}, {4, 3, 5}, {4, 2, 5});
  ASSERT_TRUE(both.support);
  EXPECT_EQ((Sizes{both.product.batch, both.product.a_stride, both.product.b_stride}), (Sizes{4, 6, 15}));
  const auto left = read("matmul", {2, 3}, {4, 3, 5}, {4, 2, 5});
  ASSERT_TRUE(left.support);
  EXPECT_EQ((Sizes{left.product.batch, left.product.a_stride, left.product.b_stride}), (Sizes{4, 0, 15}));
  EXPECT_FALSE(read("matmul", {4, 1, 2, 3}, {1, 6, 3, 5}, {4, 6, 2, 5}).support);
}

TEST(Product, ReadsLinearAsRowsTimesAWeight) {
  const auto layer = read("linear", {4, 2, 3}, {5, 3}, {4, 2, 5}, {}, true);
  ASSERT_TRUE(layer.support);
  EXPECT_EQ((Sizes{layer.product.m, layer.product.n, layer.product.k, layer.product.batch}),
            (Sizes{8, 5, 3, 1}));
  EXPECT_TRUE(layer.product.transpose_b && layer.product.bias);
}

TEST(Product, RefusesWhatIsNoProductOfFloats) {
  EXPECT_EQ(read("matmul", {2, 3}, {3, 5}, {2, 5}, {}, false, DType::i32).support.reason,
            "computes in f64, f32, f16 and bf16, got i32");
  EXPECT_EQ(read("matmul", {2, 0}, {0, 5}, {2, 5}).support.reason, "an input is empty");
}

}  // namespace
}  // namespace weft::product_test
