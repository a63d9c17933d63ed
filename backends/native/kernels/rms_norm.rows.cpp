#include <cmath>

#include "backends/native/row_launch.h"
#include "backends/native/rows.h"

namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (auto s = accepts_rows(c, 1); !s) return s;
  return one_row(c.input(1), c.input(0).max().last(1));
}

static Outcome launch(const Launch& l) {
  const TensorView x = l.input(0);
  const int64_t n = x.dim(x.rank() - 1);
  const double epsilon = l.call().attr("epsilon").real(1e-5);
  const float* weight = as_f32(l.input(1), Scratch::columns);
  for_rows(l, x, l.output(0), n, [=](int64_t, const float* from, float* to) {
    const double mean = sum_of_squares(from, 0, n) / static_cast<double>(n);
    affine(from, 0, static_cast<float>(1 / std::sqrt(mean + epsilon)), weight, nullptr, to, n);
  });
  return Outcome::ok();
}

extern const KernelRecord rms_norm_rows = {.op = "rms_norm",
                                           .variant = "rows",
                                           .reads = {"epsilon"},
                                           .accepts = accepts,
                                           .launch = launch,
                                           .in_place = true};

}  // namespace weft::native
