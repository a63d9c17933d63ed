#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_float_question("isinf", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  // Infinite: equal to itself, but x - x is not 0.
  const auto x = in[0];
  return b.bit_xor(b.equal(x, x), b.equal(b.sub(x, x), 0));
}

static constexpr ir::Op<> spec = {
    .name = "isinf",
    .doc =
        "True where `x` is infinite, of either sign.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats; the result is bool.\n"
        "Grad     none: the result is not a number.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .differentiable = false,
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef isinf = ir::define<spec>();

}  // namespace weft::ops
