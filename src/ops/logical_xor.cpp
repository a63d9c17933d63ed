#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_logic("logical_xor", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  return b.bit_xor(in[0], in[1]);
}

static constexpr ir::Op<> spec = {
    .name = "logical_xor",
    .doc =
        "True where `a` and `b` differ.\n\n"
        "Shape    NumPy broadcasting.\n"
        "DType    bool.\n"
        "Grad     none: the result is not a number.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .differentiable = false,
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef logical_xor = ir::define<spec>();

}  // namespace weft::ops
