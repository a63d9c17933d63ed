#include <algorithm>

#include "backends/onednn/product.h"

// x weightᵀ + bias as one product, the bias inside.
namespace weft::onednn {

using namespace weft::backend;

namespace {

BlockedProduct product_of(const OpCall& c) {
  const int64_t in = c.input(1).max()[1], out = c.input(1).max()[0];
  int64_t rows = 1;
  for (const int64_t d : c.output(0).max()) rows *= d;
  return BlockedProduct({.type = c.output(0).dtype(),
                         .m = rows / out,
                         .n = out,
                         .k = in,
                         .a_row = in,
                         .a_column = 1,
                         .b_row = 1,
                         .b_column = in,
                         .bias = c.input(2).has()},
                        1);
}

Support accepts(const OpCall& c) {
  if (c.n_inputs() != 3 || c.n_outputs() != 1)
    return Support::no("wants 3 inputs and 1 output, got {} and {}", c.n_inputs(), c.n_outputs());
  const TypeView x = c.input(0), weight = c.input(1), bias = c.input(2), y = c.output(0);
  if (!x.has() || !weight.has()) return Support::no("x and weight must be there");
  for (const TypeView t : {x, weight, bias})
    if (t.has() && t.dtype() != y.dtype())
      return Support::no("operands must have one dtype, got {}", t.dtype());
  if (auto s = accepts_types(c); !s) return s;
  if (x.rank() < 1 || x.rank() != y.rank() || weight.rank() != 2 || weight.max()[0] != y.max().back() ||
      weight.max()[1] != x.max().back())
    return Support::no("x, weight and the result do not fit: {}, {} and {}", x.max(), weight.max(), y.max());
  if (bias.has() && (bias.rank() != 1 || bias.max()[0] != y.max().back()))
    return Support::no("bias must have shape [{}], got {}", y.max().back(), bias.max());
  return tried([&] { (void)product_of(c); });
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  return keep(plan, std::make_unique<BlockedProduct>(product_of(c)));
}

Outcome launch(const Launch& l) {
  const auto& product = *static_cast<const BlockedProduct*>(l.raw()->plan->data);
  char* bias = l.input(2).has() ? l.input(2).data() : nullptr;
  l.host().parallel_for(product.blocks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      product.run(i, l.input(0).data(), l.input(1).data(), bias, l.output(0).data());
  });
  return Outcome::ok();
}

}  // namespace

extern const KernelRecord linear_blocks = {
    .op = "linear",
    .variant = "blocks",
    .accepts = accepts,
    .prepare = prepare,
    .release = release<BlockedProduct>,
    .launch = launch,
    .determinism = WEFT_DETERMINISM_RUN,  // blocks depend on the other sizes
};

}  // namespace weft::onednn
