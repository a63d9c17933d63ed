#include "backends/native/norms.h"
#include "backends/native/sum_of_rows.h"

// A sum and its norm, which the compiler groups (src/compiler/patterns/rows.cpp), in one pass over memory.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) { return accepts_sum(c, 1, 1); }

static Outcome launch(const Launch& l) {
  const int64_t n = l.output(0).dim(l.output(0).rank() - 1);
  const NormOperands o{as_f32(l.input(2), Scratch::columns), nullptr, l.call().attr("epsilon").real(1e-5)};
  for_rows_of_sum(l, n, [=](const float* x, float* y) { rms_norm_row(x, o, y, n); });
  return Outcome::ok();
}

extern const KernelRecord add_rms_norm_rows = {.op = "add_rms_norm",
                                               .variant = "rows",
                                               .reads = {"epsilon"},
                                               .accepts = accepts,
                                               .launch = launch,
                                               .in_place = true};

}  // namespace weft::native
