#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) { return ir::infer_bits("bit_xor", in); }

static constexpr ir::Op<> spec = {
    .name = "bit_xor",
    .doc =
        "Bits in which `a` and `b` differ.\n\n"
        "Shape    NumPy broadcasting.\n"
        "DType    integers or bool, one for both.\n"
        "Grad     none: integers and bool have none.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .differentiable = false,
    .infer = infer,
};
extern constinit const ir::OpDef bit_xor = ir::define<spec>();

}  // namespace weft::ops
