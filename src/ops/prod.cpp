#include <bit>

#include "ops/shared/pieces.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::ReduceAttrs& a) {
  return ir::infer_reduce("prod", in, a);
}

// For each element of x [rows, n], dy [rows, 1] times the product of all others. Without division, so zeros
// are right in every derivative. A tree: products of pairs up to the root, then down again, where each node
// multiplies its sibling's gradient. O(n) work in 2 log2(n) levels.
static ir::Value times_all_others(ir::Builder& b, ir::Value x, ir::Value dy) {
  const Dim rows = x.shape()[0], n = x.shape()[1];
  const auto leaves =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, n.max()))));
  const auto half = [&](ir::Value pairs, int64_t i) {
    return b.one("slice", {pairs}, {{"axis", 2}, {"start", Shape{i}}, {"stop", Shape{i + 1}}});
  };
  auto level = b.one("pad", {x}, {{"axis", 1}, {"after", Shape{Dim(leaves) - n}}, {"value", 1.0}});
  std::vector<ir::Value> pairs;
  for (int64_t m = leaves / 2; m >= 1; m /= 2) {
    pairs.push_back(b.reshape(level, {rows, m, 2}));
    level = b.mul(half(pairs.back(), 0), half(pairs.back(), 1));
  }
  auto g = dy;
  for (int64_t m = 1; !pairs.empty(); m *= 2, pairs.pop_back()) {
    const auto siblings = b.one("concat", {half(pairs.back(), 1), half(pairs.back(), 0)}, {{"axis", 2}});
    g = b.reshape(b.mul(b.reshape(g, {rows, m, 1}), siblings), {rows, 2 * m});
  }
  return b.one("slice", {g}, {{"axis", 1}, {"stop", Shape{n}}});
}

// The folded axes go last, as one axis, and back.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::ReduceAttrs& a) {
  const auto x = ctx.in(0), dy = ctx.dout(0);
  const auto kept = ir::kept_shape(x.shape(), a);
  Shape axes, back(x.shape().size(), 0), moved;
  Dim n = 1, rows = 1;
  for (const bool folded : {false, true})
    for (size_t d = 0; d < kept.size(); ++d) {
      if (ir::is_folded(a, x.rank(), d) != folded) continue;
      back[d] = Dim(axes.size());
      axes.push_back(Dim(d)), moved.push_back(x.shape()[d]);
      (folded ? n : rows) = (folded ? n : rows) * x.shape()[d];
    }
  const auto flat = b.reshape(b.one("permute", {x}, {{"axes", axes}}), {rows, n});
  const auto dx = times_all_others(b, flat, b.reshape(dy, {rows, 1}));
  return {b.one("permute", {b.reshape(dx, moved)}, {{"axes", back}})};
}

static constexpr ir::Op<ir::ReduceAttrs> spec = {
    .name = "prod",
    .doc =
        "Product over `axes`; over all of them when the list is empty.\n\n"
        "Shape    without the folded axes; with `keep` they stay, with size 1.\n"
        "DType    same as `x`; f16 and bf16 multiply in f32 or better, integers wrap around. Of nothing: 1.\n"
        "Numerics in any order, so a product may leave the range of the dtype on its way to a small result.\n"
        "Grad     needs the input; right where elements are zero.\n"
        "Errors   invalid_argument when an axis is outside [-rank, rank).",
    .inputs = {"x"},
    .traits = ir::Trait::reduction,
    .saves = ir::saves::inputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef prod = ir::define<spec>();

}  // namespace weft::ops
