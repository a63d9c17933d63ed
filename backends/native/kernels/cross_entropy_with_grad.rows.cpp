#include "backends/native/targets_of_rows.h"

// cross_entropy_grad and cross_entropy from one pass over each row.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (c.updates() > 1) return Support::no("the loss has memory of its own");
  if (auto s = accepts_slopes(c, 2); !s) return s;
  return accepts_loss(c.input(0), c.output(1));
}

static Outcome launch(const Launch& l) {
  double loss = 0;
  if (Outcome o = slopes_of_rows(l, &loss); !o.good()) return o;
  store_loss(l.output(1), loss);
  return Outcome::ok();
}

extern const KernelRecord cross_entropy_with_grad_rows = {
    .op = "cross_entropy_with_grad",
    .variant = "rows",
    .reads = {"ignore_index", "wide", "summed"},
    .accepts = accepts,
    .launch = launch,
    .in_place = true,
};

}  // namespace weft::native
