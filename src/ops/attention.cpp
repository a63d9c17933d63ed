#include <cmath>

#include "ops/shared/attention.h"

namespace weft::ops {

static Result<std::vector<TensorType>> infer(ir::Types in, const ir::AttentionAttrs& a) {
  WEFT_TRY(const auto types, ir::attention_types("attention", in, 3, 4, a));
  const auto& q = types.q;
  return std::vector<TensorType>{
      ir::turned({q.dtype, ir::attention_shape(q, types.v.shape.back())}, a),
      {ir::attention_row_type(q.dtype), Shape(q.shape.begin(), q.shape.end() - 1)}};
}

// softmax(scores) v, with the row maximum subtracted first; a row of -inf gives zeros.
static ir::ValueList decompose(ir::Builder& b, ir::Values in, const ir::AttentionAttrs& a) {
  const ir::Attention it(b, ir::turned(b, in[0], a), ir::turned(b, in[1], a), ir::turned(b, in[2], a), in[3],
                         in[4], a);
  const auto scores = it.scores();
  const auto most = b.max(scores, -1), shift = b.where(b.equal(most, -INFINITY), 0, most);
  const auto e = b.exp(b.sub(scores, shift)), total = b.sum(e, -1);
  const auto y = b.div(it.mix(e), b.where(b.equal(total, 0), 1, total));
  const auto lse = b.add(shift, b.log(total));
  return {ir::turned(b, y, a), b.reshape(lse, Shape(lse.shape().begin(), lse.shape().end() - 1))};
}

// One call of attention_grad, which backends may have fused. It leaves out rare cases: a learned mask, and
// the gradient of lse, which only second derivatives need.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::AttentionAttrs& a) {
  const auto q = ctx.in(0), k = ctx.in(1), v = ctx.in(2), y = ctx.out(0), lse = ctx.out(1), dy = ctx.dout(0);
  const auto mask = ctx.has(3) ? ctx.in(3) : ir::Value(), length = ctx.has(4) ? ctx.in(4) : ir::Value();
  const std::array operands = {q, k, v, y, lse, dy, mask, length};
  ir::Grads g =
      b.call("attention_grad", operands,
             {{"causal", int64_t{a.causal}}, {"scale", a.scale}, {"seq_first", int64_t{a.seq_first}}});
  g.resize(5);
  if (!ctx.flows(1) && !ctx.wants(3)) return g;
  const auto turned = [&](ir::Value x) { return ir::turned(b, x, a); };
  const ir::Attention it(b, turned(q), turned(k), turned(v), mask, length, a);
  const auto weights = it.weights(it.scores(), lse);
  if (ctx.flows(1)) {
    Shape rows = lse.shape();
    rows.push_back(1);
    const auto ds = b.mul(weights, b.reshape(ctx.dout(1), rows));
    g[0] = b.add(g[0], b.cast(turned(it.dq(ds)), q.dtype()));
    g[1] = b.add(g[1], b.cast(turned(it.dk(ds)), k.dtype()));
  }
  if (ctx.wants(3)) {
    const auto ds = it.dscores(weights, turned(y), turned(dy), ctx.flows(1) ? ctx.dout(1) : ir::Value());
    g[3] = b.cast(b.sum_to(ds, mask.shape()), mask.dtype());
  }
  return g;
}

static constexpr ir::Op<ir::AttentionAttrs> spec = {
    .name = "attention",
    .doc =
        "softmax(q kᵀ * scale + mask) v, for each head.\n\n"
        "Shape    q [..., heads, seq_q, dim], k [..., kv_heads, seq_k, dim], v [..., kv_heads, seq_k, width] "
        "->\n"
        "         [..., heads, seq_q, width]. heads is a multiple of kv_heads; neighbouring heads of q share "
        "one.\n"
        "         With `seq_first`, q, k, v and y have their seq axis before that of the heads, as layers "
        "make "
        "them.\n"
        "         mask broadcasts to [..., heads, seq_q, seq_k]; length is one number, or [...].\n"
        "DType    one float dtype; f16 and bf16 compute in f32. A bool mask says where a query may look (as "
        "in\n"
        "         PyTorch), a mask of q's dtype is added to the scores. length is i32 or i64.\n"
        "Numerics scale 0 stands for 1 / sqrt(dim). Only the first `length` keys count; what lies behind "
        "them "
        "may be\n"
        "         anything. With `causal` the queries stand at the end of these keys: the last one sees all, "
        "the one\n"
        "         before it one less. (PyTorch counts from the first query instead, which is the same for "
        "seq_q =\n"
        "         seq_k.) A length above seq_k counts keys that are not there, so that the first of some "
        "queries "
        "can be\n"
        "         right where the last are padding. A query that may look nowhere gets zeros.\n"
        "Grad     needs inputs, the output and its rows of log-sum-exp; a float mask has one too.\n"
        "Errors   invalid_argument for shapes and dtypes.\n"
        "Source   Vaswani et al., Attention is all you need (NeurIPS 2017); Dao et al., FlashAttention "
        "(NeurIPS "
        "2022).",
    .inputs = {"q", "k", "v", "mask", "length"},
    .outputs = {"y", "lse"},
    .n_optional = 2,
    .saves = ir::saves::inputs | ir::saves::outputs,
    .infer_many = infer,
    .decompose_many = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef attention = ir::define<spec>();

}  // namespace weft::ops
