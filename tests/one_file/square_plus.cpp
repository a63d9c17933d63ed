#include "ops/shared/rules.h"

// An op that Weft does not have: scripts/test copies this file into src/ops of a copy of the tree, and
// nothing else.
namespace weft::ops {

struct SquarePlusAttrs {
  double shift = 1;
  static constexpr auto fields = ir::fields("shift", &SquarePlusAttrs::shift);
};

static Result<TensorType> infer(ir::Types in, const SquarePlusAttrs&) {
  return ir::infer_float_unary("square_plus", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const SquarePlusAttrs& a) {
  return b.add(b.mul(in[0], in[0]), a.shift);
}

static constexpr ir::Op<SquarePlusAttrs> spec = {
    .name = "square_plus",
    .doc = "x * x + shift.\n\nShape    same as `x`.\nDType    float.\nGrad     by its decomposition.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef square_plus = ir::define<spec>();

}  // namespace weft::ops
