#include <cmath>

#include "backends/native/row_launch.h"
#include "backends/native/rows.h"

namespace weft::native {

using namespace weft::backend;

static Outcome launch(const Launch& l) {
  const TensorView x = l.input(0);
  const int64_t n = x.dim(x.rank() - 1);
  for_rows(l, x, l.output(0), n, [n](int64_t, const float* from, float* to) {
    const float most = max(from, n);
    const auto rest = static_cast<float>(std::log(exp_of_row(from, most, nullptr, n)));
    // Subtracts the maximum first: x - most is exact near it, where the result is small.
    affine(from, most, 1, nullptr, nullptr, to, n);
    affine(to, rest, 1, nullptr, nullptr, to, n);
  });
  return Outcome::ok();
}

extern const KernelRecord log_softmax_rows = {.op = "log_softmax",
                                              .variant = "rows",
                                              .reads = {"axis"},
                                              .accepts = accepts_last_axis,
                                              .launch = launch,
                                              .in_place = true};

}  // namespace weft::native
