#include <cstdio>

#include "ir/op.h"
#include "weft/jit.h"
#include "weft/ops.h"

// Sees the op of square_plus.cpp everywhere that an op shows: in weft/ops.h, in the table, eager, in
// gradients, compiled.
int main() {
  using namespace weft;
  int failed = 0;
  const auto expect = [&](const char* what, bool good) {
    if (!good) ++failed, std::printf("not so: %s\n", what);
  };
  const ir::OpDef* op = ir::find_op("square_plus");
  expect("find_op finds it", op != nullptr);
  expect("with its attribute", op && op->attrs.size() == 1);
  Tensor x = Tensor::of({1, 2, 3}, {3});
  x.requires_grad(true);
  const Tensor y = square_plus(x, 0.5);
  expect("eager", y.to_vector<float>() == std::vector<float>{1.5f, 4.5f, 9.5f});
  expect("the default of its attribute", square_plus(x).to_vector<float>()[0] == 2);
  y.backward(Tensor::of({1, 1, 1}, {3}));
  expect("its gradient", x.grad().to_vector<float>() == std::vector<float>{2, 4, 6});
  auto compiled = compile([](const std::vector<Tensor>& in) { return std::vector{square_plus(in[0], 0.5)}; },
                          {{"x", {DType::f32, {3}}}});
  expect("compiled", compiled({x})[0].to_vector<float>() == y.to_vector<float>());
  expect("by name in the program", compiled.text().find("square_plus") != std::string::npos);
  return failed;
}
