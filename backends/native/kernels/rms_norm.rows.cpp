#include "backends/native/norms.h"
#include "backends/native/row_launch.h"

namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (auto s = accepts_rows(c, 1); !s) return s;
  return one_row(c.input(1), c.input(0).max().last(1));
}

static Outcome launch(const Launch& l) {
  const TensorView x = l.input(0);
  const int64_t n = x.dim(x.rank() - 1);
  const NormOperands o{as_f32(l.input(1), Scratch::columns), nullptr, l.call().attr("epsilon").real(1e-5)};
  for_rows(l, x, l.output(0), n,
           [=](int64_t, const float* from, float* to) { rms_norm_row(from, o, to, n); });
  return Outcome::ok();
}

extern const KernelRecord rms_norm_rows = {.op = "rms_norm",
                                           .variant = "rows",
                                           .reads = {"epsilon"},
                                           .accepts = accepts,
                                           .launch = launch,
                                           .in_place = true};

}  // namespace weft::native
