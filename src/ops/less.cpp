#include "ir/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  if (!is_compute(in[0].dtype)) return invalid("less: wants a compute type, got {}", text(in[0]));
  WEFT_TRY(auto y, ir::infer_binary("less", in));
  y.dtype = DType::boolean;
  return y;
}

static constexpr ir::Op<> spec = {
    .name = "less",
    .doc =
        "True where `a` < `b`.\n\nShape    NumPy broadcasting.\nDType    one dtype for both; the result is "
        "bool. A NaN is never less.\nGrad     none: the result is not a number.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .differentiable = false,
    .infer = infer,
};
extern constinit const ir::OpDef less = ir::define<spec>();

}  // namespace weft::ops
