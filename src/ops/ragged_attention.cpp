#include "ops/shared/ragged.h"

namespace weft::ops {

struct RaggedAttentionAttrs {
  double scale = 0;
  static constexpr auto fields = ir::fields("scale", &RaggedAttentionAttrs::scale);
};

static Result<std::vector<TensorType>> infer(ir::Types in, const RaggedAttentionAttrs&) {
  const auto &q = in[0], &k = in[1], &v = in[2];
  if (!is_float(q.dtype) || !is_compute(q.dtype) || k.dtype != q.dtype || v.dtype != q.dtype)
    return invalid("ragged_attention: wants q, k and v of one float dtype, got {}, {} and {}", text(q),
                   text(k), text(v));
  const bool ranks = q.rank() == 3 && k.rank() == 4 && v.rank() == 4;
  if (!ranks || !(q.shape[2] == k.shape[3]) || !(k.shape[0] == v.shape[0]) || !(k.shape[1] == v.shape[1]) ||
      !(k.shape[2] == v.shape[2]))
    return invalid(
        "ragged_attention: wants q [tokens, heads, dim], k [batch, kv_heads, capacity, dim] and v [batch, "
        "kv_heads, capacity, width], got {}, {} and {}",
        text(q), text(k), text(v));
  const Dim heads = q.shape[1], kv = k.shape[1];
  if (!heads.is_const() || !kv.is_const() || kv.value() < 1 || heads.value() % kv.value() != 0)
    return invalid("ragged_attention: the heads of q must be a multiple of those of k, got {} and {}",
                   heads.text(), kv.text());
  WEFT_CHECK(ir::check_ragged("ragged_attention", k.shape[0], in[3], in[4]));
  return std::vector<TensorType>{{q.dtype, {q.shape[0], heads, v.shape[3]}}};
}

// Each token is a query against the cache of its sequence; a backend that fuses the gather into the product
// copies no keys. For a single sequence all queries are rows of one product.
static ir::ValueList decompose(ir::Builder& b, ir::Values in, const RaggedAttentionAttrs& a) {
  const auto q = in[0], k = in[1], v = in[2];
  const Shape of_q = q.shape(), of_k = k.shape(), of_v = v.shape();  // copies: the builder moves its types
  const Dim tokens = of_q[0], batch = of_k[0], capacity = of_k[2], width = of_v[3];
  const ir::Ragged it(b, tokens, batch, capacity, in[3], in[4]);
  const auto most = b.full(1, {}, DType::i32, capacity);
  const auto seen = b.where(it.is_in_one(), b.minimum(b.maximum(b.add(it.position(), 1), 0), most), 0);
  const std::initializer_list<Attr> attrs = {{"scale", a.scale}};
  const auto all = ir::Value();
  if (batch == Dim(1)) {
    const auto alone = [&](ir::Value x, const Shape& s) { return b.reshape(x, {s[1], s[2], s[3]}); };
    const auto turned = [&](ir::Value x) {
      return b.one("transpose", {x}, {{"axis_a", int64_t{0}}, {"axis_b", int64_t{1}}});
    };
    const auto place = b.one("iota", {}, {{"size", Shape{capacity}}});
    const auto mask = b.less(place, b.reshape(seen, {tokens, 1}));
    const auto end = b.reshape(b.max(seen, 0), {});
    const std::array operands = {turned(q), alone(k, of_k), alone(v, of_v), mask, end};
    return {turned(b.call("attention", operands, attrs)[0])};
  }
  const std::array operands = {b.reshape(q, {tokens, of_q[1], 1, of_q[2]}), b.gather(k, it.sequence(), 0, 0),
                               b.gather(v, it.sequence(), 0, 0), all, seen};
  return {b.reshape(b.call("attention", operands, attrs)[0], {tokens, of_q[1], width})};
}

static constexpr ir::Op<RaggedAttentionAttrs> spec = {
    .name = "ragged_attention",
    .doc =
        "Causal attention of sequences of different lengths over their caches: softmax(q kᵀ * scale) v for "
        "each head.\n\n"
        "Shape    q [tokens, heads, dim], k [batch, kv_heads, capacity, dim], v [batch, kv_heads, capacity, "
        "width],\n"
        "         length [batch], offsets [batch + 1] -> [tokens, heads, width]; batch >= 1. heads is a "
        "multiple of\n"
        "         kv_heads; neighbouring heads of q share one. Token t belongs to sequence i with offsets[i] "
        "<= t <\n"
        "         offsets[i + 1]; a sequence may have none. It stands at position length[i] + t - offsets[i] "
        "and sees\n"
        "         the keys up to and with its own: length is what the sequence had before its tokens here.\n"
        "DType    one float dtype; f16 and bf16 compute in f32. length and offsets are i32 or i64.\n"
        "Numerics scale 0 stands for 1 / sqrt(dim). What lies behind the keys that a sequence's last token "
        "sees may be\n"
        "         anything. A token of no sequence gets zeros. A length outside 0..capacity and an offset "
        "outside\n"
        "         0..tokens count as the nearest in it. Of offsets out of order, token t belongs to the "
        "sequence i\n"
        "         where i + 1 offsets are at most t.\n"
        "Grad     none.\n"
        "Errors   invalid_argument for shapes and dtypes.\n"
        "Source   Dao et al., FlashAttention (NeurIPS 2022), whose variable-length kernels name the offsets "
        "cu_seqlens;\n"
        "         Kwon et al., PagedAttention (SOSP 2023).",
    .inputs = {"q", "k", "v", "length", "offsets"},
    .outputs = {"y"},
    .differentiable = false,
    .infer_many = infer,
    .decompose_many = decompose,
};
extern constinit const ir::OpDef ragged_attention = ir::define<spec>();

}  // namespace weft::ops
