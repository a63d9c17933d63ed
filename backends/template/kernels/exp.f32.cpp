#include <cmath>

#include "weft/backend.hpp"

// exp in single precision: the C library's expf is right to one unit in the last place.
namespace weft::kernels {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (c.n_inputs() != 1 || !c.input(0).has()) return Support::no("wants 1 input, got {}", c.n_inputs());
  if (c.input(0).dtype() != DType::f32) return Support::no("dtype must be f32, got {}", c.input(0).dtype());
  return Support::yes();
}

static Outcome launch(const Launch& l) {
  const float* x = l.input(0).data<float>();
  float* y = l.output(0).data<float>();
  l.host().parallel_for(l.output(0).size(), 1 << 12, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = std::exp(x[i]);
  });
  return Outcome::ok();
}

extern const KernelRecord exp_f32 = {
    .op = "exp",
    .variant = "f32",
    .accepts = accepts,
    .launch = launch,
    .in_place = true,
};

}  // namespace weft::kernels
