#include "ops/shared/pieces.h"

namespace weft::ops {

struct SortAttrs {
  int64_t axis = -1;
  bool descending = false;
  static constexpr auto fields = ir::fields("axis", &SortAttrs::axis, "descending", &SortAttrs::descending);
};

static Result<std::vector<TensorType>> infer(ir::Types in, const SortAttrs& a) {
  WEFT_TRY([[maybe_unused]] const int64_t axis, ir::resolve_counted_axis("sort", a.axis, in[0]));
  if (!is_compute(in[0].dtype)) return invalid("sort: wants a compute type, got {}", text(in[0]));
  return std::vector<TensorType>{in[0], {DType::i32, in[0].shape}};
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const SortAttrs& a) {
  return {ir::give_back(b, ctx.in_type(0), ctx.out(1), ctx.dout(0), a.axis)};
}

static constexpr ir::Op<SortAttrs> spec = {
    .name = "sort",
    .doc =
        "Sorts along `axis`, and says where each element came from.\n\n"
        "Shape    both results as `x`.\n"
        "DType    values as `x`, a compute type; indices i32.\n"
        "Numerics stable in both directions: equal elements stay in their order. A NaN counts as larger than "
        "any number:\n"
        "         last, or first when `descending`.\n"
        "Grad     needs the indices.\n"
        "Errors   invalid_argument when `axis` is outside [-rank, rank) or longer than i32 counts.",
    .inputs = {"x"},
    .outputs = {"values", "indices"},
    .n_public = 2,
    .saves = ir::saves::output(1),
    .infer_many = infer,
    .grad = grad,
};
extern constinit const ir::OpDef sort = ir::define<spec>();

}  // namespace weft::ops
