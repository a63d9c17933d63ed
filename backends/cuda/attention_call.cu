#include "attention_call.hpp"

#include <algorithm>
#include <cmath>

namespace weft::cuda {

using namespace backend;

namespace {

Strides strides_of(int64_t heads, int64_t rows, int64_t dim, bool seq_first) {
  if (seq_first) return {heads * rows * dim, dim, heads * dim};
  return {heads * rows * dim, rows * dim, dim};
}

Support known(TypeView t, const char* name) {
  for (int64_t i = 0; i < t.rank(); ++i)
    if (!t.shape()[i].known())
      return Support::no("{} has sizes from {} to {}", name, t.shape()[i].min(), t.shape()[i].max());
  return Support::yes();
}

}  // namespace

Support attention_sizes(const OpCall& c, int64_t mask, AttentionSizes& s) {
  const TypeView q = c.input(0), k = c.input(1), v = c.input(2);
  if (c.input(mask).has() || c.input(mask + 1).has()) return Support::no("no mask and no length");
  for (const auto& [t, name] : {std::pair{q, "q"}, {k, "k"}, {v, "v"}})
    if (auto all = known(t, name); !all) return all;
  const DType type = q.dtype();
  if (type != DType::f32 && type != DType::f16 && type != DType::bf16)
    return Support::no("computes on f32, f16 and bf16, got {}", type);
  const bool seq_first = c.attr("seq_first").integer();
  const auto at = [&](TypeView t, int from_end) { return t.max()[static_cast<size_t>(t.rank() - from_end)]; };
  const int64_t heads = at(q, seq_first ? 2 : 3), kv_heads = at(k, seq_first ? 2 : 3),
                seq_q = at(q, seq_first ? 3 : 2), seq_k = at(k, seq_first ? 3 : 2), dim = at(q, 1);
  if (at(v, 1) != dim) return Support::no("v must be as wide as k, got {} and {}", at(v, 1), dim);
  if (dim > 128) return Support::no("heads of at most 128 numbers, got {}", dim);
  if (std::max({heads * seq_q, heads * seq_k}) >= int64_t{1} << 24)
    return Support::no("{} heads of {} and {} rows", heads, seq_q, seq_k);
  s.batch = 1;
  for (int64_t i = 0; i < q.rank() - 3; ++i) s.batch *= q.max()[static_cast<size_t>(i)];
  const int64_t tiles = std::max(seq_q, seq_k) / kTile + 1;
  if (s.batch * heads >= (int64_t{1} << 30) / tiles)
    return Support::no("{} matrices of {} by {} scores", s.batch * heads, seq_q, seq_k);
  s.heads = static_cast<int>(heads), s.shared_by = kv_heads ? static_cast<int>(heads / kv_heads) : 1;
  s.seq_q = static_cast<int>(seq_q), s.seq_k = static_cast<int>(seq_k), s.dim = static_cast<int>(dim);
  s.q = strides_of(heads, seq_q, dim, seq_first), s.k = strides_of(kv_heads, seq_k, dim, seq_first);
  const double scale = c.attr("scale").real();
  s.scale = static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(dim)));
  s.causal = c.attr("causal").integer();
  return Support::yes();
}

// Sequences are captured again for each set of memory, so addresses may be looked at.
void look_at_addresses(const Launch& l, AttentionSizes& s) {
  s.aligned = s.dim % 8 == 0;
  for (int64_t i = 0; i < l.call().n_inputs(); ++i)
    if (const TensorView t = l.input(i); t.has() && reinterpret_cast<uintptr_t>(t.data()) % 16)
      s.aligned = false;
}

}  // namespace weft::cuda
