#include "ops/shared/rules.h"

namespace weft::ops {

struct RopeAttrs {
  bool interleaved = false;
  static constexpr auto fields = ir::fields("interleaved", &RopeAttrs::interleaved);
};

static Result<TensorType> infer(ir::Types in, const RopeAttrs&) {
  const auto &x = in[0], &cos = in[1], &sin = in[2];
  if (x.rank() < 1 || cos.dtype != x.dtype || sin.dtype != x.dtype || !(cos.shape == sin.shape))
    return invalid("rope: wants x [..., dim] and cos, sin [..., dim / 2] of one dtype, got {}, {} and {}",
                   text(x), text(cos), text(sin));
  Shape half = x.shape;
  half.back() = floor_div(half.back(), 2);
  WEFT_TRY(const Shape joined, ir::broadcast_shapes("rope", half, cos.shape));
  if (!(half.back() * Dim(2) == x.shape.back()) || cos.rank() < 1 || !(cos.shape.back() == half.back()) ||
      !(joined == half))
    return invalid("rope: cos and sin {} do not broadcast to {}, half of {}", text(cos), text(half), text(x));
  return ir::infer_float_unary("rope", in);
}

// The two elements of each pair: [..., dim] viewed as [..., 2, dim / 2], or as [..., dim / 2, 2].
struct Pairs {
  ir::Value first, second;  // [..., dim / 2]
};
static Pairs pairs(ir::Builder& b, ir::Value x, bool interleaved) {
  Shape half = x.shape(), split = x.shape();
  half.back() = floor_div(half.back(), 2);
  split.back() = interleaved ? half.back() : Dim(2);
  split.push_back(interleaved ? Dim(2) : half.back());
  const auto view = b.reshape(x, split);
  const auto part = [&](int64_t i) {
    return b.reshape(
        b.one("slice", {view},
              {{"axis", int64_t{interleaved ? -1 : -2}}, {"start", Shape{i}}, {"stop", Shape{i + 1}}}),
        half);
  };
  return {part(0), part(1)};
}
static ir::Value joined(ir::Builder& b, const Pairs& p, bool interleaved) {
  Shape one = p.first.shape(), whole = one;
  whole.back() = whole.back() * Dim(2);
  one.insert(interleaved ? one.size() : one.size() - 1, Dim(1));
  const auto both = b.one("concat", {b.reshape(p.first, one), b.reshape(p.second, one)},
                          {{"axis", int64_t{interleaved ? -1 : -2}}});
  return b.reshape(both, whole);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const RopeAttrs& a) {
  const auto x = pairs(b, in[0], a.interleaved);
  const auto cos = in[1], sin = in[2];
  return joined(
      b, {b.sub(b.mul(x.first, cos), b.mul(x.second, sin)), b.add(b.mul(x.first, sin), b.mul(x.second, cos))},
      a.interleaved);
}

// dx is dy rotated back by the same angle; the tables' gradients follow the definition.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const RopeAttrs& a) {
  const auto dy = ctx.dout(0), cos = ctx.in(1), sin = ctx.in(2);
  ir::Grads g = {b.one("rope", {dy, cos, b.neg(sin)}, {{"interleaved", int64_t{a.interleaved}}}), {}, {}};
  if (!ctx.wants(1) && !ctx.wants(2)) return g;
  const auto x = pairs(b, ctx.in(0), a.interleaved), d = pairs(b, dy, a.interleaved);
  g[1] = b.sum_to(b.add(b.mul(d.first, x.first), b.mul(d.second, x.second)), ctx.in_type(1).shape);
  g[2] = b.sum_to(b.sub(b.mul(d.second, x.first), b.mul(d.first, x.second)), ctx.in_type(2).shape);
  return g;
}

static constexpr ir::Op<RopeAttrs> spec = {
    .name = "rope",
    .doc =
        "Rotary position embedding: turns each pair of elements of `x` by an angle that belongs to its "
        "position.\n\n"
        "Shape    x [..., seq, dim]; cos and sin broadcast to [..., seq, dim / 2]; same as `x`.\n"
        "         Pair i is elements i and i + dim / 2, or 2 i and 2 i + 1 when `interleaved`.\n"
        "DType    one float dtype; f16 and bf16 compute in f32.\n"
        "Numerics the tables are operands, so that one pair of them, made once, serves all layers and any "
        "rule for\n"
        "         the angles; rope_tables makes the usual ones.\n"
        "Grad     of x: the same, turned back; the tables have one too.\n"
        "Errors   invalid_argument for shapes and dtypes and when dim is odd.\n"
        "Source   Su et al., RoFormer: Enhanced transformer with rotary position embedding (2021).",
    .inputs = {"x", "cos", "sin"},
    .saves = ir::saves::inputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef rope = ir::define<spec>();

}  // namespace weft::ops
