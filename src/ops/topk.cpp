#include "ops/shared/pieces.h"

namespace weft::ops {

struct TopkAttrs {
  int64_t k = 1;
  int64_t axis = -1;
  bool largest = true;
  static constexpr auto fields =
      ir::fields("k", &TopkAttrs::k, "axis", &TopkAttrs::axis, "largest", &TopkAttrs::largest);
};

static Result<std::vector<TensorType>> infer(ir::Types in, const TopkAttrs& a) {
  WEFT_TRY(const int64_t axis, ir::resolve_counted_axis("topk", a.axis, in[0]));
  if (!is_compute(in[0].dtype)) return invalid("topk: wants a compute type, got {}", text(in[0]));
  TensorType y = in[0];
  Dim& size = y.shape[static_cast<size_t>(axis)];
  if (a.k < 0 || a.k > size.min()) return invalid("topk: k must be in [0, {}], got {}", size.text(), a.k);
  size = a.k;
  return std::vector<TensorType>{y, {DType::i32, y.shape}};
}

static ir::ValueList decompose(ir::Builder& b, ir::Values in, const TopkAttrs& a) {
  const auto sorted =
      b.call("sort", std::array{in[0]}, {{"axis", a.axis}, {"descending", int64_t{a.largest}}});
  const auto first = [&](ir::Value v) {
    return b.one("slice", {v}, {{"axis", a.axis}, {"stop", Shape{a.k}}});
  };
  return {first(sorted[0]), first(sorted[1])};
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const TopkAttrs& a) {
  return {ir::give_back(b, ctx.in_type(0), ctx.out(1), ctx.dout(0), a.axis)};
}

static constexpr ir::Op<TopkAttrs> spec = {
    .name = "topk",
    .doc =
        "The `k` largest elements along `axis`, in order, and where they came from; the smallest unless "
        "`largest`.\n\n"
        "Shape    `axis` has size k.\n"
        "DType    values as `x`, a compute type; indices i32.\n"
        "Numerics of equal elements the one with the lower index comes first. A NaN counts as larger than "
        "any "
        "number.\n"
        "Grad     needs the indices.\n"
        "Errors   invalid_argument when `axis` is outside [-rank, rank) or longer than i32\n"
        "         counts, or k is longer than it.",
    .inputs = {"x"},
    .outputs = {"values", "indices"},
    .n_public = 2,
    .saves = ir::saves::output(1),
    .infer_many = infer,
    .decompose_many = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef topk = ir::define<spec>();

}  // namespace weft::ops
