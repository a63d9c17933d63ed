#include "ops/shared/rules.h"

namespace weft::ops {

static Result<std::vector<TensorType>> infer(ir::Types in, const ir::NoAttrs&) {
  const auto &to = in[0], &from = in[1];
  if (!(to.shape == from.shape))
    return invalid("assign: both must have one shape, got {} and {}", text(to), text(from));
  if (to.dtype != from.dtype && !(is_float(to.dtype) && is_float(from.dtype)))
    return invalid("assign: converts floats only, got {} and {}", text(to), text(from));
  return std::vector<TensorType>{to};
}

static ir::ValueList decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  return {b.cast(in[1], in[0].dtype())};
}

static constexpr ir::Op<> spec = {
    .name = "assign",
    .doc =
        "Puts the elements of `from` in the place of those of `to`.\n\n"
        "Shape    the same for both.\n"
        "DType    any, the same for both; or two floats: `from` is rounded, to f16 and bf16 through f32.\n"
        "Grad     none: it is an update.\n"
        "Errors   invalid_argument for shapes and dtypes.",
    .inputs = {"to", "from"},
    .outputs = {"new_to"},
    .n_public = 0,
    .updates = {ir::UpdateRule{0, 0}},
    .differentiable = false,
    .infer_many = infer,
    .decompose_many = decompose,
};
extern constinit const ir::OpDef assign = ir::define<spec>();

}  // namespace weft::ops
