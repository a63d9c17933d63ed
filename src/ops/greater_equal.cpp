#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_comparison("greater_equal", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  return b.bit_or(b.less(in[1], in[0]), b.equal(in[0], in[1]));
}

static constexpr ir::Op<> spec = {
    .name = "greater_equal",
    .doc =
        "True where `a` >= `b`.\n\n"
        "Shape    NumPy broadcasting.\n"
        "DType    one compute type for both; the result is bool. False where either is NaN.\n"
        "Grad     none: the result is not a number.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .differentiable = false,
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef greater_equal = ir::define<spec>();

}  // namespace weft::ops
