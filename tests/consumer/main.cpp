#include <cstdio>

#include "weft/jit.h"
#include "weft/ops.h"

// Links, runs eagerly, differentiates and compiles: shows that the installed package is complete.
int main() {
  weft::Tensor x = weft::Tensor::of({1, 2, 3}, {3});
  x.requires_grad(true);
  weft::mean_square(x).backward();
  const auto compiled =
      weft::compile([](const std::vector<weft::Tensor>& in) { return std::vector{in[0] + in[0]}; },
                    {{"x", {weft::DType::f32, {3}}}});
  const auto twice = weft::Compiled(compiled)({x})[0].to_vector<float>();
  const auto grad = x.grad().to_vector<float>();
  for (size_t i = 0; i < 3; ++i) std::printf("%.3f %.3f\n", twice[i], grad[i]);
  return twice[2] == 6 && grad[2] == 2 ? 0 : 1;
}
