#include "ops/shared/rules.h"

namespace weft::ops {

static Result<std::vector<TensorType>> infer(ir::Types in, const ir::IndexAttrs& a) {
  WEFT_TRY(const Shape shape, ir::gathered_shape("assign_rows", in[0], in[1], a));
  if (in[2].dtype != in[0].dtype || !(in[2].shape == shape))
    return invalid("assign_rows: rows must be {}, got {}", text(TensorType{in[0].dtype, shape}), text(in[2]));
  return std::vector<TensorType>{in[0]};
}

static ir::ValueList decompose(ir::Builder& b, ir::Values in, const ir::IndexAttrs& a) {
  return {b.one("scatter", {in[0], in[1], in[2]}, {{"axis", a.axis}, {"batch", a.batch}})};
}

static constexpr ir::Op<ir::IndexAttrs> spec = {
    .name = "assign_rows",
    .doc =
        "Puts `rows` in the place of slices of `to` along `axis`, each at its index: scatter in place.\n\n"
        "Shape    rows as gather(to, index) would be.\n"
        "DType    to and rows any one dtype, index i32 or i64.\n"
        "Numerics of equal indices the last one wins, on every backend.\n"
        "Grad     none: it is an update.\n"
        "Errors   invalid_argument for shapes and dtypes; a device error for an index outside the axis;\n"
        "         compiled text can't report one and leaves that row out.",
    .inputs = {"to", "index", "rows"},
    .outputs = {"new_to"},
    .n_public = 0,
    .updates = {ir::UpdateRule{0, 0}},
    .differentiable = false,
    .infer_many = infer,
    .decompose_many = decompose,
};
extern constinit const ir::OpDef assign_rows = ir::define<spec>();

}  // namespace weft::ops
