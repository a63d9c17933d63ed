#include "backends/native/norms.h"
#include "backends/native/row_launch.h"

namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (auto s = accepts_rows(c, 2, 2); !s) return s;
  const int64_t trailing = c.attr("trailing").integer(1);
  if (trailing < 1 || trailing > c.input(0).rank())
    return Support::no("trailing must be in [1, {}], got {}", c.input(0).rank(), trailing);
  const auto row = c.input(0).max().last(static_cast<size_t>(trailing));
  if (auto s = one_row(c.input(1), row); !s) return s;
  return one_row(c.input(2), row);
}

static Outcome launch(const Launch& l) {
  const TensorView x = l.input(0);
  const int64_t trailing = l.call().attr("trailing").integer(1);
  const int64_t n = shared::product(x.dims().last(static_cast<size_t>(trailing)));
  const NormOperands o{l.input(1).has() ? as_f32(l.input(1), Scratch::columns) : nullptr,
                       l.input(2).has() ? as_f32(l.input(2), Scratch::scores) : nullptr,
                       l.call().attr("epsilon").real(1e-5)};
  for_rows(l, x, l.output(0), n,
           [=](int64_t, const float* from, float* to) { layer_norm_row(from, o, to, n); });
  return Outcome::ok();
}

extern const KernelRecord layer_norm_rows = {.op = "layer_norm",
                                             .variant = "rows",
                                             .reads = {"epsilon", "trailing"},
                                             .accepts = accepts,
                                             .launch = launch,
                                             .in_place = true};

}  // namespace weft::native
