#include "backends/native/norm_grad.h"

namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) { return accepts_norm_grad(c, 1, 2); }

static Outcome launch(const Launch& l) {
  const TensorView x = l.input(0);
  return launch_norm_grad(l, x.dim(x.rank() - 1), false);
}

extern const KernelRecord rms_norm_grad_rows = {.op = "rms_norm_grad",
                                                .variant = "rows",
                                                .reads = {"epsilon"},
                                                .accepts = accepts,
                                                .launch = launch,
                                                .accumulates = true,
                                                .in_place = true};

}  // namespace weft::native
