#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_logic("logical_and", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  return b.bit_and(in[0], in[1]);
}

static constexpr ir::Op<> spec = {
    .name = "logical_and",
    .doc =
        "True where both `a` and `b` are.\n\n"
        "Shape    NumPy broadcasting.\n"
        "DType    bool.\n"
        "Grad     none: the result is not a number.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .differentiable = false,
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef logical_and = ir::define<spec>();

}  // namespace weft::ops
