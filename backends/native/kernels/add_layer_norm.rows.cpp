#include "backends/native/norms.h"
#include "backends/native/sum_of_rows.h"

// As add_rms_norm.rows; weight and bias, or the bias, may be missing.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  const int64_t more = c.n_inputs() - 2, trailing = c.attr("trailing").integer(1);
  if (more < 0 || more > 2) return Support::no("wants 2 to 4 inputs, got {}", c.n_inputs());
  if (trailing < 1) return Support::no("trailing must be positive, got {}", trailing);
  return accepts_sum(c, more, static_cast<size_t>(trailing));
}

static Outcome launch(const Launch& l) {
  const auto trailing = static_cast<size_t>(l.call().attr("trailing").integer(1));
  const int64_t n = shared::product(l.output(0).dims().last(trailing)), inputs = l.call().n_inputs();
  const NormOperands o{inputs > 2 ? as_f32(l.input(2), Scratch::columns) : nullptr,
                       inputs > 3 ? as_f32(l.input(3), Scratch::scores) : nullptr,
                       l.call().attr("epsilon").real(1e-5)};
  for_rows_of_sum(l, n, [=](const float* x, float* y) { layer_norm_row(x, o, y, n); });
  return Outcome::ok();
}

extern const KernelRecord add_layer_norm_rows = {.op = "add_layer_norm",
                                                 .variant = "rows",
                                                 .reads = {"epsilon", "trailing"},
                                                 .accepts = accepts,
                                                 .launch = launch,
                                                 .in_place = true};

}  // namespace weft::native
