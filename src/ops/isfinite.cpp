#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_float_question("isfinite", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  // x - x is 0 for every finite x and NaN for all others.
  return b.equal(b.sub(in[0], in[0]), 0);
}

static constexpr ir::Op<> spec = {
    .name = "isfinite",
    .doc =
        "True where `x` is neither infinite nor NaN.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats; the result is bool.\n"
        "Grad     none: the result is not a number.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .differentiable = false,
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef isfinite = ir::define<spec>();

}  // namespace weft::ops
