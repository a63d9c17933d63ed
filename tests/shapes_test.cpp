#include <gtest/gtest.h>

#include "ir/graph.h"
#include "weft/jit.h"
#include "weft/ops.h"

// reshape, slice and pools beyond the cases of conformance/ops: error messages and symbolic sizes.
namespace weft::shapes_test {
namespace {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
#define EXPECT_SAYS(words, ...) \
  EXPECT_NE(error_of([&] { (void)(__VA_ARGS__); }).find(words), std::string::npos) << #__VA_ARGS__

Tensor counted(std::initializer_list<int64_t> shape) {
  return reshape(iota(element_count(std::span(shape.begin(), shape.size())), DType::f32),
                 to_shape(std::span(shape.begin(), shape.size())));
}

/// The shape of f's result, traced with an input x of this shape.
Shape traced_shape(const Shape& x, const std::function<Tensor(const Tensor&)>& f) {
  const Traced traced = trace([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{f(in[0])}; },
                              {{"x", {DType::f32, x}}});
  return traced.graph->types[static_cast<size_t>(traced.graph->outputs[0].value)].shape;
}

TEST(Shapes, AReshapeThatCannotBeIsRefusedInWords) {
  const Tensor x = counted({4, 6}), none = full(0, {0, 3});
  EXPECT_SAYS("at most one size may be -1, got [-1, -1]", reshape(x, {-1, -1}));
  EXPECT_SAYS("f32[4, 6] has 24 elements, which 5 does not divide: no size fits the -1 in [5, -1]",
              reshape(x, {5, -1}));
  EXPECT_SAYS("any size could stand for the -1 in [-1, 0]", reshape(none, {-1, 0}));
  EXPECT_SAYS("any size could stand for the -1", reshape(x, {0, -1}));
  EXPECT_SAYS("sizes must be 0 or more, or -1", reshape(x, {-4, -6}));
  EXPECT_SAYS("has 24 elements, [5, 5] has 25", reshape(x, {5, 5}));
  EXPECT_EQ(reshape(none, {-1, 3}).sizes(), (IntList{0, 3}));
  EXPECT_EQ(reshape(Tensor::scalar(7), {-1}).sizes(), IntList{1});
}

TEST(Shapes, TheUnknownSizeOfATraceIsFoundInSymbols) {
  const Dim b = Dim::symbol("batch", 1, 8), s = Dim::symbol("seq", 1, 64);
  const auto reshaped = [&](const Shape& from, const Shape& to) {
    return traced_shape(from, [&](const Tensor& x) { return reshape(x, to); });
  };
  EXPECT_EQ(reshaped({b, s, 64}, {-1, 64}), (Shape{b * s, 64}));
  EXPECT_EQ(reshaped({b, s, 64}, {b, s, 4, -1}), (Shape{b, s, 4, 16}));
  EXPECT_EQ(reshaped({b, s + 1}, {-1, s + 1}), (Shape{b, s + 1}));
  EXPECT_SAYS("no size fits the -1", reshaped({b, 3}, {2, -1}));
  EXPECT_SAYS("sizes must be 0 or more, or -1", reshaped({b, 3}, {b - 2, -1}));
}

TEST(Shapes, BoundsOfASliceCountFromTheEndOfASymbolicAxisToo) {
  const Dim b = Dim::symbol("batch", 1, 8);
  const auto sliced = [&](Dim start, Dim stop, int64_t step) {
    return traced_shape({b, 2}, [&](const Tensor& x) { return slice(x, 0, start, stop, step); })[0];
  };
  EXPECT_EQ(sliced(-1, Dim::kMax, 1), Dim(1));
  EXPECT_EQ(sliced(0, -1, 1), b - 1);
  EXPECT_EQ(sliced(0, b, 1), b);
  EXPECT_EQ(sliced(0, 4, 1), min(b, 4));
  EXPECT_SAYS("start batch+-3 is from -2 to 5, and only negative bounds count from the end",
              sliced(b - 3, b, 1));
  // All bounds on all sizes, beside the same call with the sizes known.
  for (const Dim start : {Dim(-9), Dim(-3), Dim(0), Dim(2), Dim(9)})
    for (const Dim stop : {Dim(-9), Dim(-2), Dim(0), Dim(5), Dim(Dim::kMax)}) {
      const auto f = [&](const std::vector<Tensor>& in) {
        const Tensor x = in[0].detach().requires_grad(true), y = slice(x, 0, start, stop, 2);
        sum(mul(y, y)).backward();
        return std::vector<Tensor>{y, x.grad()};
      };
      Compiled compiled = compile(f, {{"x", {DType::f32, {b, 2}}}});
      for (const int64_t n : {1, 4, 8}) {
        SCOPED_TRACE(fmt::format("[{}:{}:2] of {}", start.text(), stop.text(), n));
        const auto want = f({counted({n, 2})}), got = compiled({counted({n, 2})});
        for (size_t k = 0; k < 2; ++k) {
          EXPECT_EQ(got[k].sizes(), want[k].sizes());
          EXPECT_EQ(got[k].to_vector<float>(), want[k].to_vector<float>());
        }
      }
    }
}

TEST(Shapes, AProgramHoldsSizesAndBoundsSpelledOut) {
  const Traced traced = trace(
      [](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{reshape(slice(in[0], -1, -3, -1), {-1})};
      },
      {{"x", {DType::f32, {4, 6}}}});
  EXPECT_NE(traced.text().find("axis=1, start=[3], stop=[5]"), std::string::npos) << traced.text();
  EXPECT_NE(traced.text().find("shape=[8]"), std::string::npos) << traced.text();
}

TEST(Shapes, CeilModeOnASymbolicAxisIsThatOfItsSize) {
  const Dim n = Dim::symbol("n", 2, 32);
  for (const bool average : {false, true})
    for (const Shape& padding : {Shape{0, 0}, Shape{1, 1}}) {
      const auto f = [&](const std::vector<Tensor>& in) {
        const Tensor x = in[0].detach().requires_grad(true);
        const Tensor y =
            average ? avg_pool(x, {3}, {2}, padding, true, true) : max_pool(x, {3}, {2}, padding, {}, true);
        sum(mul(y, y)).backward();
        return std::vector<Tensor>{y, x.grad()};
      };
      Compiled compiled = compile(f, {{"x", {DType::f32, {1, n}}}});
      for (const int64_t size : {2, 3, 4, 5, 8, 31}) {
        SCOPED_TRACE(fmt::format("average {} padding {} size {}", average, padding.size(), size));
        const auto want = f({counted({1, size})}), got = compiled({counted({1, size})});
        for (size_t k = 0; k < 2; ++k) {
          EXPECT_EQ(got[k].sizes(), want[k].sizes());
          EXPECT_EQ(got[k].to_vector<float>(), want[k].to_vector<float>());
        }
      }
    }
  EXPECT_SAYS("with ceil_mode, padding must be less than the 2 elements that a window spans, got 2",
              max_pool(counted({1, 8}), {2}, {}, {0, 2}, {}, true));
}

TEST(Shapes, ASliceThatSaysNoEndHasATextThatCanBeRead) {
  auto graph = ir::parse("input x %0: f32[4]\n%1: f32[3] = slice(%0) {axis=0, start=[1]}\noutput y %1\n");
  ASSERT_TRUE(graph.ok()) << graph.status().text();
  const std::string text = ir::print(*graph);
  auto again = ir::parse(text);
  ASSERT_TRUE(again.ok()) << again.status().text() << "\n" << text;
  EXPECT_EQ(ir::print(*again), text);
}

// seq//2 and max(seq, 4) are the same for several values of seq.
TEST(Shapes, AQuotientDoesNotTellASymbolButAProductDoes) {
  const Dim seq = Dim::symbol("seq", 1, 64);
  const auto sum_of_places = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{add(sum(in[0]), sum(iota(seq, DType::f32)))};
  };
  Compiled halves = compile(sum_of_places, {{"half", {DType::f32, {floor_div(seq, 2)}}}});
  EXPECT_SAYS("dimension seq//2 is 3 for seq = 6 and for 7", halves({counted({3})}));
  EXPECT_EQ(halves({counted({32})})[0].item(), 31 * 32 / 2 + 63 * 64 / 2);  // seq is at most 64
  Compiled both = compile(
      sum_of_places, {{"half", {DType::f32, {floor_div(seq, 2)}}}, {"twice", {DType::f32, {seq * Dim(2)}}}});
  EXPECT_EQ(both({counted({3}), counted({14})})[0].item(), 3 + 21);
  EXPECT_EQ(both({counted({3}), counted({12})})[0].item(), 3 + 15);
  EXPECT_SAYS("axis 0", both({counted({3}), counted({16})}));
}

}  // namespace
}  // namespace weft::shapes_test
