#include "../rows.h"

namespace weft::kernels {

using namespace backend;

static Support accepts(const OpCall& c) {
  const int64_t axis = c.attr("axis").integer(-1), rank = c.input(0).rank();
  if (axis != -1 && axis != rank - 1) return Support::no("the last axis, got {} of {}", axis, rank);
  return cubins::takes_rows(c, "softmax");
}

static Outcome launch(const Launch& l) {
  const auto r = cubins::row_launch(l, "softmax");
  if (!r.kernel) return Outcome::fail(WEFT_DEVICE, "{}", r.why);
  return r.kernel->start(l, r.rows, l.input(0).data<void>(), l.output(0).data<void>(), r.columns,
                         static_cast<int32_t>(r.rows.x));
}

extern const KernelRecord softmax_rows = {
    .op = "softmax", .variant = "rows", .reads = {"axis"}, .accepts = accepts, .launch = launch};

}  // namespace weft::kernels
