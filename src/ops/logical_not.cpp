#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_logic("logical_not", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) { return b.bit_xor(in[0], 1); }

static constexpr ir::Op<> spec = {
    .name = "logical_not",
    .doc =
        "True where `x` is false.\n\n"
        "Shape    same as `x`.\n"
        "DType    bool.\n"
        "Grad     none: the result is not a number.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .differentiable = false,
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef logical_not = ir::define<spec>();

}  // namespace weft::ops
