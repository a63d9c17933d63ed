#include "backends/native/row_launch.h"
#include "backends/native/rows.h"

namespace weft::native {

using namespace weft::backend;

static Outcome launch(const Launch& l) {
  const TensorView x = l.input(0);
  const int64_t n = x.dim(x.rank() - 1);
  for_rows(l, x, l.output(0), n, [n](int64_t, const float* from, float* to) {
    const double total = exp_of_row(from, max(from, n), to, n);
    affine(to, 0, static_cast<float>(1 / total), nullptr, nullptr, to, n);
  });
  return Outcome::ok();
}

extern const KernelRecord softmax_rows = {.op = "softmax",
                                          .variant = "rows",
                                          .reads = {"axis"},
                                          .accepts = accepts_last_axis,
                                          .launch = launch,
                                          .in_place = true};

}  // namespace weft::native
