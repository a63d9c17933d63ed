#include "ops/shared/rules.h"

namespace weft::ops {

struct SelfAttentionAttrs {
  bool causal = true;
  double scale = 0;
  static constexpr auto fields =
      ir::fields("causal", &SelfAttentionAttrs::causal, "scale", &SelfAttentionAttrs::scale);
};

static Result<TensorType> infer(ir::Types in, const SelfAttentionAttrs&) {
  const auto &x = in[0], &w = in[1], &out = in[2];
  const bool fits = x.rank() >= 2 && w.rank() == 2 && out.rank() == 2 && w.dtype == x.dtype &&
                    out.dtype == x.dtype && w.shape[0] == x.shape.back() &&
                    w.shape[1] == out.shape[0] * Dim(3);
  if (!fits)
    return invalid(
        "self_attention_1h: wants x [..., seq, dim], w_qkv [dim, 3 * width] and w_out [width, dim_out], "
        "got {}, {} and {}",
        text(x), text(w), text(out));
  WEFT_TRY(TensorType y, ir::infer_float_unary("self_attention_1h", in));
  y.shape.back() = out.shape[1];
  return y;
}

// One projection for q, k and v; attention with one head; an output projection.
static ir::Value decompose(ir::Builder& b, ir::Values in, const SelfAttentionAttrs& a) {
  const auto qkv = b.matmul(in[0], in[1]);
  const Dim width = in[2].shape()[0];
  Shape head = qkv.shape();
  head.back() = width;
  const Shape flat = head;
  head.insert(head.size() - 2, Dim(1));
  const auto part = [&](int64_t i) {
    const auto cut =
        b.one("slice", {qkv},
              {{"axis", int64_t{-1}}, {"start", Shape{width * Dim(i)}}, {"stop", Shape{width * Dim(i + 1)}}});
    return b.reshape(cut, head);
  };
  const auto y =
      b.one("attention", {part(0), part(1), part(2)}, {{"causal", int64_t{a.causal}}, {"scale", a.scale}});
  return b.matmul(b.reshape(y, flat), in[2]);
}

static constexpr ir::Op<SelfAttentionAttrs> spec = {
    .name = "self_attention_1h",
    .doc =
        "Attention of a sequence to itself with one head: q, k and v are projections of `x`, and so is the "
        "result.\n\n"
        "Shape    x [..., seq, dim], w_qkv [dim, 3 * width] (q, k, v side by side), w_out [width, dim_out] "
        "->\n"
        "         [..., seq, dim_out].\n"
        "DType    one float dtype; f16 and bf16 compute in f32.\n"
        "Numerics as attention; scale 0 stands for 1 / sqrt(width).\n"
        "Grad     by the decomposition.\n"
        "Errors   invalid_argument for shapes and dtypes.",
    .inputs = {"x", "w_qkv", "w_out"},
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef self_attention_1h = ir::define<spec>();

}  // namespace weft::ops
