#include "../rows.h"

namespace weft::kernels {

using namespace backend;

static Support accepts(const OpCall& c) { return cubins::takes_rows(c, "rms_norm"); }

static Outcome launch(const Launch& l) {
  const auto r = cubins::row_launch(l, "rms_norm");
  if (!r.kernel) return Outcome::fail(WEFT_DEVICE, "{}", r.why);
  return r.kernel->start(
      l, r.rows, l.input(0).data<void>(), l.input(1).data<void>(), l.output(0).data<void>(), r.columns,
      static_cast<float>(l.call().attr("epsilon").real(1e-5)), static_cast<int32_t>(r.rows.x));
}

extern const KernelRecord rms_norm_rows = {
    .op = "rms_norm", .variant = "rows", .reads = {"epsilon"}, .accepts = accepts, .launch = launch};

}  // namespace weft::kernels
