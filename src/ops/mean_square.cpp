#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  WEFT_TRY(auto y, ir::infer_float_unary("mean_square", in));
  y.shape = {};
  return y;
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  const auto x = in[0];
  return b.div(b.sum_all(b.mul(x, x)), b.full(1, {}, x.dtype(), element_count(x.shape())));
}

static constexpr ir::Op<> spec = {
    .name = "mean_square",
    .doc =
        "Mean of the squares of all elements.\n\n"
        "Shape    the result has rank 0.\n"
        "DType    float.\n"
        "Grad     by its decomposition; needs the input.",
    .inputs = {"x"},
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef mean_square = ir::define<spec>();

}  // namespace weft::ops
