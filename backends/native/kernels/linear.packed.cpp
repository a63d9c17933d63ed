#include <algorithm>

#include "backends/native/spread.h"
#include "weft/shared/walk.hpp"

// One product for all rows, which adds to the bias: the result is written once.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (c.n_inputs() < 2 || c.n_inputs() > 3 || c.n_outputs() != 1 || !c.input(0).has() || !c.input(1).has())
    return Support::no("wants x, a weight and perhaps a bias");
  const TypeView x = c.input(0), weight = c.input(1), bias = c.input(2), y = c.output(0);
  for (const TypeView t : {x, weight, y})
    if (t.dtype() != DType::f32) return Support::no("dtype must be f32, got {}", t.dtype());
  if (x.rank() < 1 || weight.rank() != 2 || y.rank() != x.rank())
    return Support::no("wants x [..., in] and weight [out, in], got {} and {}", x.max(), weight.max());
  const int64_t in = x.max().back(), out = weight.max()[0];
  const auto rows = static_cast<size_t>(x.rank() - 1);
  if (weight.max()[1] != in || y.max().back() != out ||
      !std::ranges::equal(y.max().first(rows), x.max().first(rows)))
    return Support::no("x {} and weight {} don't make {}", x.max(), weight.max(), y.max());
  if (bias.has() && (bias.dtype() != DType::f32 || bias.rank() != 1 || bias.max()[0] != out))
    return Support::no("bias must be f32[{}]", out);
  return Support::yes();
}

static Outcome launch(const Launch& l) {
  const TensorView x = l.input(0), weight = l.input(1), y = l.output(0);
  const TensorView bias(l.call().n_inputs() > 2 ? l.input(2).raw() : nullptr);
  const int64_t n = weight.dim(0), k = weight.dim(1);
  const Product<float> p{.m = n == 0 ? 0 : y.size() / n,
                         .n = n,
                         .k = k,
                         .a = x.data<float>(),
                         .a_row = k,
                         .b = weight.data<float>(),
                         .b_row = 1,
                         .b_column = k,
                         .c = y.data<float>(),
                         .c_row = n,
                         .accumulate = bias.has()};
  if (bias.has())
    l.host().parallel_for(p.m, shared::grain_for(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) std::copy_n(bias.data<float>(), n, p.c + i * n);
    });
  multiply_all<float>(l.host(), 1, p, [&](int64_t) { return p; });
  return Outcome::ok();
}

extern const KernelRecord linear_packed = {
    .op = "linear",
    .variant = "packed",
    .accepts = accepts,
    .launch = launch,
    .determinism = WEFT_DETERMINISM_RUN,  // how k is cut depends on the other sizes
};

}  // namespace weft::native
