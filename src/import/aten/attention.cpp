#include <array>

#include "import/call.h"

// Attention, by the op that a model calls and by those that autograd makes of it on a CPU.
namespace weft::importer {
namespace {

// PyTorch counts `is_causal` from the first query and key, Weft from the last ones.
ir::Value causal_mask(Call& c, ir::Value q, ir::Value k) {
  const auto count = [&](ir::Value v) { return v.shape()[v.shape().size() - 2]; };
  const auto rows = c.b.reshape(c.b.one("iota", {}, {{"size", Shape{count(q)}}}), {count(q), 1});
  return c.b.one("less_equal", {c.b.one("iota", {}, {{"size", Shape{count(k)}}}), rows});
}

struct Attention {
  ir::Value q, k, v, mask;
  bool causal = false, single = false;  // single: without heads
  double scale = 0;
};
// Refuses what is no attention of Weft's.
Attention attention_operands(Call& c) {
  Attention a{c.tensor("query"), c.tensor("key"), c.tensor("value"), c.maybe("attn_mask")};
  c.unify({&a.q, &a.k, &a.v});
  if (c.real("dropout_p") > 0)
    c.refuse(
        fail(Code::unsupported, "it drops elements at random, as in training; export after model.eval()"));
  if (a.q.rank() < 2 || a.k.rank() != a.q.rank() || a.v.rank() != a.q.rank())
    c.refuse(invalid("query, key and value are {}, {}, {}", weft::text(a.q.type()), weft::text(a.k.type()),
                     weft::text(a.v.type())));
  if (!c.status().ok()) return a;
  a.single = a.q.rank() == 2;
  for (ir::Value* x : {&a.q, &a.k, &a.v})
    if (a.single) *x = c.b.reshape(*x, {1, x->shape()[0], x->shape()[1]});
  a.causal = c.flag("is_causal");
  if (a.causal && !(a.q.shape()[a.q.shape().size() - 2] == a.k.shape()[a.k.shape().size() - 2])) {
    a.mask = causal_mask(c, a.q, a.k);
    a.causal = false;
  }
  if (a.mask && a.mask.dtype() != DType::boolean) a.mask = c.b.cast(a.mask, a.q.dtype());
  a.scale = c.has("scale") ? c.real("scale") : 0;
  if (c.has("scale") && a.scale == 0) a.q = c.b.mul(a.q, 0), a.scale = 1;  // 0 stands for the usual one
  return a;
}
ir::ValueList attended(Call& c, const Attention& a) {
  const std::array all = {a.q, a.k, a.v, a.mask};
  return c.b.call("attention", all, {{"causal", int64_t{a.causal}}, {"scale", a.scale}});
}
void attention(Call& c) {
  const Attention a = attention_operands(c);
  if (!c.status().ok()) return;
  const auto y = c.b.cast(attended(c, a)[0], c.declared().dtype);
  c.give(a.single ? c.b.reshape(y, c.declared().shape) : y);
}
// Beside the result: log(sum(exp(scores))) of each row.
void flash_attention(Call& c) {
  const Attention a = attention_operands(c);
  if (c.status().ok()) c.give(attended(c, a));
}
void flash_attention_backward(Call& c) {
  const Attention a = attention_operands(c);
  if (!c.status().ok()) return;
  const std::array all = {a.q,   a.k, a.v, c.tensor("out"), c.tensor("logsumexp"), c.tensor("grad_out"),
                          a.mask};
  auto g = c.b.call("attention_grad", all, {{"causal", int64_t{a.causal}}, {"scale", a.scale}});
  if (c.has("scale") && c.real("scale") == 0)
    g[0] = c.b.mul(g[0], 0);  // of the queries, which were multiplied by 0
  c.give(g);
}

constexpr AtenOp attention_ops[] = {
    {"_scaled_dot_product_flash_attention_for_cpu.default",
     "query, key, value, dropout_p=0.0, is_causal=false, attn_mask?, scale=None", "attention",
     flash_attention},
    {"_scaled_dot_product_flash_attention_for_cpu_backward.default",
     "grad_out, query, key, value, out, logsumexp, dropout_p=, is_causal=, attn_mask?, scale=None",
     "attention_grad", flash_attention_backward},
    {"scaled_dot_product_attention.default",
     "query, key, value, attn_mask?, dropout_p=0.0, is_causal=false, scale=None, enable_gqa=false",
     "attention", attention},
};

}  // namespace

extern constinit const Family attention_family = {attention_ops};

}  // namespace weft::importer
