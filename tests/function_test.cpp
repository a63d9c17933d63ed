#include "weft/function.h"

#include <gtest/gtest.h>

#include "weft/jit.h"
#include "weft/ops.h"

// Functions with a gradient of their own. Those that Python writes are in python/tests/test_gradients.py.
namespace weft::function_test {
namespace {

// x^3, computed where nothing is recorded, with a gradient that is said: 3 x^2, or what `scale` makes of it.
Tensor cube(const Tensor& x, double scale = 3) {
  Tensor y;
  {
    const NoGrad off;
    y = x * x * x;
  }
  return with_gradient({x}, {y}, {x},
                       [scale](const std::vector<Tensor>& dy, const std::vector<Tensor>& saved) {
                         return std::vector<Tensor>{saved[0] * saved[0] * dy[0] * scale};
                       })[0];
}

Tensor leaf(std::initializer_list<double> elements) {
  return Tensor::of(elements, {static_cast<int64_t>(elements.size())}).requires_grad(true);
}

TEST(Function, HasTheGradientThatIsSaid) {
  Tensor x = leaf({1, 2});
  sum(cube(x, 10) * 2).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{20, 80}));
}

TEST(Function, SecondDerivativesGoOnIntoWhatWasSaved) {
  Tensor x = leaf({2});
  sum(cube(x)).backward(Tensor(), true);
  const Tensor first = x.grad();
  x.clear_grad();
  sum(first).backward();
  EXPECT_EQ(first.to_vector<float>(), std::vector<float>{12});
  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>{12});
}

TEST(Function, RecordsNothingWhereNothingIsWanted) {
  EXPECT_FALSE(cube(Tensor::of({2}, {1})).requires_grad());
  const NoGrad off;
  EXPECT_FALSE(cube(leaf({2})).requires_grad());
}

TEST(Function, IsTracedWithItsGradient) {
  Tensor w = leaf({2, 3}).named("w");
  auto step = compile(
      [&](const std::vector<Tensor>& in) {
        w.clear_grad();
        sum(cube(w, 10) * in[0]).backward();
        return std::vector<Tensor>{w.grad()};
      },
      {{"x", {DType::f32, {2}}}});
  EXPECT_EQ(step({Tensor::of({1, 2}, {2})})[0].to_vector<float>(), (std::vector<float>{40, 180}));
}

std::string refused(const std::function<void()>& what) {
  try {
    what();
  } catch (const Error& e) {
    return e.status().message();
  }
  return "";
}

TEST(Function, RulesAreChecked) {
  Tensor x = leaf({1, 2});
  const auto with = [&](GradientRule rule) {
    Tensor y;
    {
      const NoGrad off;
      y = x * 2;
    }
    sum(with_gradient({x}, {y}, {x}, std::move(rule))[0]).backward();
  };
  using List = std::vector<Tensor>;
  EXPECT_NE(refused([&] { with([](auto&, auto&) { return List(); }); }).find("0 gradients for 1 inputs"),
            std::string::npos);
  EXPECT_NE(refused([&] {
              with([](auto&, auto&) { return List{Tensor::scalar(1)}; });
            }).find("gradient of input 0 is f32[], and the input f32[2]"),
            std::string::npos);
  with([](auto&, auto&) { return List{Tensor()}; });  // none
  EXPECT_FALSE(x.grad());
}

TEST(Function, WhatWasSavedMayNotChange) {
  Tensor x = leaf({1, 2});
  const Tensor y = sum(cube(x));
  {
    const NoGrad off;
    assign(x, x * 2);
  }
  EXPECT_NE(refused([&] { y.backward(); }).find("overwritten in place"), std::string::npos);
}

}  // namespace
}  // namespace weft::function_test
