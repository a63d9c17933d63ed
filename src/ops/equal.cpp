#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_comparison("equal", in);
}

static constexpr ir::Op<> spec = {
    .name = "equal",
    .doc =
        "True where `a` = `b`.\n\nShape    NumPy broadcasting.\nDType    one compute type for both; the "
        "result is "
        "bool. A NaN equals nothing.\nGrad     none: the result is not a number.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .differentiable = false,
    .infer = infer,
};
extern constinit const ir::OpDef equal = ir::define<spec>();

}  // namespace weft::ops
