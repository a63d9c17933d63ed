#include "backends/native/row_launch.h"
#include "backends/native/rows.h"

namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (auto s = accepts_alike(c, 2); !s) return s;
  const int64_t axis = c.attr("axis").integer(-1), rank = c.input(0).rank();
  if (rank < 1) return Support::no("wants rows, got a single element");
  if (axis == rank - 1 || axis == -1) return Support::yes();
  return Support::no("axis must be last, got {} of {}", axis, rank);
}

static Outcome launch(const Launch& l) {
  const TensorView y = l.input(0), dy = l.input(1);
  const int64_t n = y.dim(y.rank() - 1);
  for_rows(l, y, l.output(0), n, [&](int64_t r, const float* weights, float* dx) {
    const float* slopes = dy.data<float>() + r * n;
    affine(slopes, static_cast<float>(dot(weights, slopes, n)), 1, weights, nullptr, dx, n);
  });
  return Outcome::ok();
}

extern const KernelRecord softmax_grad_rows = {.op = "softmax_grad",
                                               .variant = "rows",
                                               .reads = {"axis"},
                                               .accepts = accepts,
                                               .launch = launch,
                                               .in_place = true};

}  // namespace weft::native
