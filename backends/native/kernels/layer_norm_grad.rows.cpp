#include "backends/native/norm_grad.h"

namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) { return accepts_norm_grad(c, c.attr("trailing").integer(1), 3); }

static Outcome launch(const Launch& l) {
  const auto trailing = static_cast<size_t>(l.call().attr("trailing").integer(1));
  return launch_norm_grad(l, shared::product(l.input(0).dims().last(trailing)), true);
}

extern const KernelRecord layer_norm_grad_rows = {.op = "layer_norm_grad",
                                                  .variant = "rows",
                                                  .reads = {"epsilon", "trailing"},
                                                  .accepts = accepts,
                                                  .launch = launch,
                                                  .accumulates = true,
                                                  .in_place = true};

}  // namespace weft::native
