#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_shift("shift_left", in);
}

static constexpr ir::Op<> spec = {
    .name = "shift_left",
    .doc =
        "Bits of `a` moved up by `b` places; zeros come in below.\n\n"
        "Shape    NumPy broadcasting.\n"
        "DType    one integer dtype for both.\n"
        "Numerics an amount outside [0, bits of the dtype) gives 0.\n"
        "Grad     none: integers have none.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .differentiable = false,
    .infer = infer,
};
extern constinit const ir::OpDef shift_left = ir::define<spec>();

}  // namespace weft::ops
