#include <algorithm>

#include "weft/backend.hpp"

// add without broadcasting: one loop that the compiler turns into vector instructions.
namespace weft::kernels {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (c.n_inputs() != 2) return Support::no("wants 2 inputs, got {}", c.n_inputs());
  for (int64_t i = 0; i < 2; ++i) {
    const TypeView x = c.input(i);
    if (!x.has() || x.dtype() != DType::f32) return Support::no("input {} must be f32", i);
    if (!std::ranges::equal(x.max(), c.output(0).max()))
      return Support::no("input {} must not broadcast, got {} for {}", i, x.max(), c.output(0).max());
  }
  return Support::yes();
}

static Outcome launch(const Launch& l) {
  const float *a = l.input(0).data<float>(), *b = l.input(1).data<float>();
  float* y = l.output(0).data<float>();
  l.host().parallel_for(l.output(0).size(), 1 << 14, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = a[i] + b[i];
  });
  return Outcome::ok();
}

extern const KernelRecord add_flat = {
    .op = "add",
    .variant = "flat",
    .accepts = accepts,
    .launch = launch,
    .determinism = WEFT_DETERMINISM_DEVICES,
    .in_place = true,  // each element is read before it is written
};

}  // namespace weft::kernels
