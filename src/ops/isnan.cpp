#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_float_question("isnan", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  return b.bit_xor(b.equal(in[0], in[0]), 1);
}

static constexpr ir::Op<> spec = {
    .name = "isnan",
    .doc =
        "True where `x` is NaN.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats; the result is bool.\n"
        "Grad     none: the result is not a number.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .differentiable = false,
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef isnan = ir::define<spec>();

}  // namespace weft::ops
