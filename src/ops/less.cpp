#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) { return ir::infer_comparison("less", in); }

static constexpr ir::Op<> spec = {
    .name = "less",
    .doc =
        "True where `a` < `b`.\n\nShape    NumPy broadcasting.\nDType    one compute type for both; the "
        "result is "
        "bool. A NaN is never less.\nGrad     none: the result is not a number.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .differentiable = false,
    .infer = infer,
};
extern constinit const ir::OpDef less = ir::define<spec>();

}  // namespace weft::ops
