#include "ops/shared/attention.h"

namespace weft::ops {

static Result<std::vector<TensorType>> infer(ir::Types in, const ir::AttentionAttrs& a) {
  WEFT_TRY(const auto types, ir::attention_types("attention_grad", in, 6, 7, a));
  const auto &q = types.q, &y = in[3], &lse = in[4], &dy = in[5];
  const TensorType result = ir::turned({q.dtype, ir::attention_shape(q, types.v.shape.back())}, a);
  const TensorType rows = {ir::attention_row_type(q.dtype), Shape(q.shape.begin(), q.shape.end() - 1)};
  if (!(y == result) || !(dy == result) || !(lse == rows))
    return invalid("attention_grad: wants y and dy {} and lse {}, got {}, {} and {}", text(result),
                   text(rows), text(y), text(dy), text(lse));
  return std::vector<TensorType>{in[0], in[1], in[2]};
}

static ir::ValueList decompose(ir::Builder& b, ir::Values in, const ir::AttentionAttrs& a) {
  const auto turned = [&](ir::Value x) { return ir::turned(b, x, a); };
  const ir::Attention it(b, turned(in[0]), turned(in[1]), turned(in[2]), in[6], in[7], a);
  const auto weights = it.weights(it.scores(), in[4]), dy = turned(in[5]);
  const auto ds = it.dscores(weights, turned(in[3]), dy, ir::Value());
  return {turned(it.dq(ds)), turned(it.dk(ds)), turned(it.dv(weights, dy))};
}

static constexpr ir::Op<ir::AttentionAttrs> spec = {
    .name = "attention_grad",
    .doc =
        "The gradients of attention(q, k, v, mask, length) for q, k and v, from its results and that of "
        "`y`.\n\n"
        "Shape    y and dy as the result of attention, lse [..., heads, seq_q]: log(sum(exp(scores))) of "
        "each row,\n"
        "         -inf where a query looks nowhere. dq, dk, dv as q, k, v. `seq_first` as attention.\n"
        "DType    one float dtype; lse is f64 for f64, otherwise f32. f16 and bf16 compute in f32.\n"
        "Numerics weights are made again from the scores and lse, not kept.\n"
        "Grad     by the decomposition.\n"
        "Errors   invalid_argument for shapes and dtypes.\n"
        "Source   Dao et al., FlashAttention (NeurIPS 2022), appendix B.2.",
    .inputs = {"q", "k", "v", "y", "lse", "dy", "mask", "length"},
    .outputs = {"dq", "dk", "dv"},
    .n_optional = 2,
    .n_public = 3,
    .infer_many = infer,
    .decompose_many = decompose,
};
extern constinit const ir::OpDef attention_grad = ir::define<spec>();

}  // namespace weft::ops
