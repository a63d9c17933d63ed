#include "ops/shared/rules.h"

namespace weft::ops {

struct TransposeAttrs {
  int64_t axis_a = -2;
  int64_t axis_b = -1;
  static constexpr auto fields =
      ir::fields("axis_a", &TransposeAttrs::axis_a, "axis_b", &TransposeAttrs::axis_b);
};

static Result<TensorType> infer(ir::Types in, const TransposeAttrs& a) {
  WEFT_TRY(const int64_t i, ir::resolve_axis("transpose", a.axis_a, in[0].rank()));
  WEFT_TRY(const int64_t j, ir::resolve_axis("transpose", a.axis_b, in[0].rank()));
  TensorType y = in[0];
  std::swap(y.shape[static_cast<size_t>(i)], y.shape[static_cast<size_t>(j)]);
  return y;
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const TransposeAttrs& a) {
  Shape axes;
  for (int64_t d = 0; d < in[0].rank(); ++d) axes.push_back(d);
  const auto at = [&](int64_t axis) { return static_cast<size_t>(axis < 0 ? axis + in[0].rank() : axis); };
  std::swap(axes[at(a.axis_a)], axes[at(a.axis_b)]);
  return b.one("permute", {in[0]}, {{"axes", axes}});
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const TransposeAttrs& a) {
  return {b.one("transpose", {ctx.dout(0)}, {{"axis_a", a.axis_a}, {"axis_b", a.axis_b}})};
}

static constexpr ir::Op<TransposeAttrs> spec = {
    .name = "transpose",
    .doc =
        "Swaps two axes of `x`; the last two by default.\n\n"
        "Shape    that of `x` with `axis_a` and `axis_b` swapped.\n"
        "DType    any.\n"
        "Grad     needs nothing.\n"
        "Errors   invalid_argument when an axis is outside [-rank, rank).",
    .inputs = {"x"},
    .traits = ir::Trait::movement,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef transpose = ir::define<spec>();

}  // namespace weft::ops
