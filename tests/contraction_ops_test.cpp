#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph.h"
#include "weft/einsum.h"
#include "weft/ledger.h"
#include "weft/ops.h"
#include "weft/trace.h"

// Contractions beyond the cases of conformance/ops: absent operands in the middle, more than eight operands,
// symbolic sizes, and the calls of a gradient.
namespace weft::contraction_ops_test {
namespace {

Tensor numbers(std::vector<int64_t> shape, double first = 0, DType t = DType::f64) {
  std::vector<double> v(static_cast<size_t>(element_count(std::span<const int64_t>(shape))));
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::sin(first + 1.3 * static_cast<double>(i));
  return Tensor::of(std::span<const double>(v), shape, t);
}

void expect_close(const Tensor& a, const Tensor& b) {
  const auto va = a.to_vector<double>(), vb = b.to_vector<double>();
  ASSERT_EQ(va.size(), vb.size());
  for (size_t i = 0; i < va.size(); ++i) EXPECT_NEAR(va[i], vb[i], 1e-12) << "element " << i;
}

TEST(Einsum, OfAnOperandItselfIsAResultOfItsOwn) {
  Tensor x = numbers({2, 2});
  x.requires_grad(true);
  for (const char* equation : {"ij", "ij->ij", "..."}) {
    const Tensor y = einsum(equation, {x});
    y.backward(numbers({2, 2}, 3));
    expect_close(x.grad(), numbers({2, 2}, 3));
    x.clear_grad();
  }
}

TEST(Einsum, ARankAboveTheLimitIsAnError) {
  const Tensor a = full(1, {2, 2, 2, 2, 2}), b = full(1, {2, 2, 2, 2});
  for (const char* backend : {"native", "reference"}) {
    const Tensor x = a.to(backend), y = b.to(backend);
    EXPECT_THROW((void)einsum("abcde,fghi->abcdefghi", {x, y}), Error) << backend;
    EXPECT_THROW((void)einsum("abcde,fghi", {x, y}), Error) << backend;
  }
}

TEST(Trace, AnEmptyOutputIsAnError) {
  EXPECT_THROW((void)trace([](const std::vector<Tensor>&) { return std::vector<Tensor>{Tensor()}; },
                           {{"x", {DType::f32, {2}}}}),
               Error);
}

TEST(Attention, ALengthIsASliceOfTheCache) {
  const Tensor q = numbers({2, 2, 3}), k = numbers({1, 6, 3}, 1), v = numbers({1, 6, 2}, 2);
  const Tensor length = Tensor::of({4}, {}, DType::i32);
  for (const bool causal : {false, true})
    expect_close(attention(q, k, v, Tensor(), length, causal),
                 attention(q, slice(k, 1, 0, 4), slice(v, 1, 0, 4), Tensor(), Tensor(), causal));
}

TEST(Attention, OneQueryAfterAnotherSeesWhatAllAtOnceSee) {
  const Tensor q = numbers({2, 4, 3}), k = numbers({2, 4, 3}, 1), v = numbers({2, 4, 2}, 2);
  const Tensor whole = attention(q, k, v, Tensor(), Tensor(), true);
  for (int64_t i = 0; i < 4; ++i) {
    const Tensor length = Tensor::of({double(i + 1)}, {}, DType::i32);
    expect_close(attention(slice(q, 1, i, i + 1), k, v, Tensor(), length, true), slice(whole, 1, i, i + 1));
  }
}

TEST(Attention, TheGradientIsOneCall) {
  Tensor q = numbers({2, 3, 4}), k = numbers({1, 3, 4}, 1), v = numbers({1, 3, 2}, 2);
  const Traced traced = trace(
      [](const std::vector<Tensor>& in) {
        std::vector<Tensor> x = in;
        for (Tensor& t : x) t.requires_grad(true);
        sum(attention(x[0], x[1], x[2], Tensor(), Tensor(), true)).backward();
        return std::vector<Tensor>{x[0].grad(), x[1].grad(), x[2].grad()};
      },
      {{"q", q.type()}, {"k", k.type()}, {"v", v.type()}});
  int forward = 0, backward = 0;
  for (const auto& node : traced.graph->nodes) {
    forward += std::string_view(node.op->name) == "attention";
    backward += std::string_view(node.op->name) == "attention_grad";
    EXPECT_NE(std::string_view(node.op->name), "matmul");
  }
  EXPECT_EQ(forward, 1);
  EXPECT_EQ(backward, 1);
}

TEST(Conv, SymbolicSizesAndTheirGradients) {
  const Dim n = Dim::symbol("batch", 1, 8), size = Dim::symbol("size", 5, 64);
  const Traced traced = trace(
      [](const std::vector<Tensor>& in) {
        std::vector<Tensor> x = in;
        for (Tensor& t : x) t.requires_grad(true);
        const Tensor y = conv(x[0], x[1], {2}, {1, 0});
        sum(y).backward();
        return std::vector<Tensor>{y, x[0].grad(), x[1].grad()};
      },
      {{"x", {DType::f32, {n, 2, size}}}, {"w", {DType::f32, {3, 2, 3}}}});
  const auto& out = traced.graph->outputs;
  const auto shape = [&](size_t i) { return traced.graph->types[static_cast<size_t>(out[i].value)].shape; };
  EXPECT_EQ(shape(0), (Shape{n, 3, floor_div(size - 2, 2) + 1}));
  EXPECT_EQ(shape(1), (Shape{n, 2, size}));
  EXPECT_EQ(shape(2), (Shape{3, 2, 3}));
}

TEST(Einsum, MoreTensorsThanAnOpTakes) {
  std::vector<Tensor> chain;
  std::string equation;
  Tensor product;
  for (int i = 0; i < 10; ++i) {
    chain.push_back(numbers({2 + i % 3, 2 + (i + 1) % 3}, i));
    equation += std::string(i ? "," : "") + char('a' + i) + char('a' + i + 1);
    product = i ? matmul(product, chain.back()) : chain.back();
  }
  expect_close(einsum(equation + "->ak", chain), product);
}

TEST(Einsum, IntegersToo) {
  const Tensor a = Tensor::of({1, 2, 3, 4}, {2, 2}, DType::i64),
               b = Tensor::of({5, 6, 7, 8}, {2, 2}, DType::i64);
  EXPECT_EQ(einsum("ij,jk->ki", {a, b}).to_vector<double>(), (std::vector<double>{19, 43, 22, 50}));
}

TEST(Einsum, WrongEquationsAreErrors) {
  const Tensor a = numbers({2, 3}), b = numbers({2, 3});
  EXPECT_THROW((void)einsum("ij,jk->ik", {a, b}), Error);
  EXPECT_THROW((void)einsum("ij", {a, b}), Error);
  EXPECT_THROW((void)einsum("ij", {}), Error);
}

}  // namespace
}  // namespace weft::contraction_ops_test
