#include "backends/onednn/body.h"
#include "backends/onednn/product.h"

// A body that is a linear layer and its activation, as one product.
namespace weft::onednn {

using namespace weft::backend;

namespace {

struct Fused {
  LinearBody body;
  BlockedProduct product;
};

Fused fused(const LinearBody& b) {
  return {b, BlockedProduct({.type = DType::f32,
                             .m = b.m,
                             .n = b.n,
                             .k = b.k,
                             .a_row = b.k,
                             .a_column = 1,
                             .b_row = 1,
                             .b_column = b.k,
                             .bias = b.bias >= 0,
                             .epilogue = b.epilogue},
                            1)};
}

Support accepts(const OpCall& c) {
  std::string why;
  const auto body = linear_body(c, why);
  if (!body) return {false, why};
  if (auto s = accepts_types(c); !s) return s;
  return tried([&] { (void)fused(*body); });
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  std::string why;
  return keep(plan, std::make_unique<Fused>(fused(linear_body(c, why).value())));
}

Outcome launch(const Launch& l) {
  const auto& f = *static_cast<const Fused*>(l.raw()->plan->data);
  char* bias = f.body.bias >= 0 ? l.input(f.body.bias).data() : nullptr;
  l.host().parallel_for(f.product.blocks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      f.product.run(i, l.input(f.body.x).data(), l.input(f.body.weight).data(), bias, l.output(0).data());
  });
  return Outcome::ok();
}

}  // namespace

extern const KernelRecord region_linear = {
    .op = "region",
    .variant = "linear",
    .accepts = accepts,
    .prepare = prepare,
    .release = release<Fused>,
    .launch = launch,
    .determinism = WEFT_DETERMINISM_RUN,  // blocks depend on the other sizes
    .reads_all = true,
};

}  // namespace weft::onednn
