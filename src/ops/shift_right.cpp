#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_shift("shift_right", in);
}

static constexpr ir::Op<> spec = {
    .name = "shift_right",
    .doc =
        "Bits of `a` moved down by `b` places; copies of the sign, or zeros, come in above.\n\n"
        "Shape    NumPy broadcasting.\n"
        "DType    one integer dtype for both.\n"
        "Numerics an amount outside [0, bits of the dtype) gives 0, or -1 where `a` is negative.\n"
        "Grad     none: integers have none.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .differentiable = false,
    .infer = infer,
};
extern constinit const ir::OpDef shift_right = ir::define<spec>();

}  // namespace weft::ops
