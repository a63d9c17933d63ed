#include "ops/shared/pieces.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::ArgAttrs& a) {
  return ir::infer_arg("argmax", in, a);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::ArgAttrs& a) {
  return ir::first_position(b, in[0], ir::fold(b, "max", in[0], {a.axis}), a);
}

static constexpr ir::Op<ir::ArgAttrs> spec = {
    .name = "argmax",
    .doc =
        "Where the largest element along `axis` stands.\n\n"
        "Shape    without `axis`; with `keep` it stays, with size 1.\n"
        "DType    i32, from any number type.\n"
        "Numerics of equal elements the first. A NaN wins, and again the first.\n"
        "Grad     none: integers.\n"
        "Errors   invalid_argument when `axis` is outside [-rank, rank), may be empty, or is longer than "
        "i32\n"
        "         counts.",
    .inputs = {"x"},
    .traits = ir::Trait::reduction,
    .differentiable = false,
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef argmax = ir::define<spec>();

}  // namespace weft::ops
