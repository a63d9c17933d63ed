#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) { return ir::infer_bits("bit_or", in); }

static constexpr ir::Op<> spec = {
    .name = "bit_or",
    .doc =
        "Bits that are set in `a` or `b` or both.\n\n"
        "Shape    NumPy broadcasting.\n"
        "DType    integers or bool, one for both.\n"
        "Grad     none: integers and bool have none.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .differentiable = false,
    .infer = infer,
};
extern constinit const ir::OpDef bit_or = ir::define<spec>();

}  // namespace weft::ops
