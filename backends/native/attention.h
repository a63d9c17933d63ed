#pragma once
#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/native/steps.h"
#include "weft/backend.hpp"

// What the attention kernels share: sizes of a call, and blocks of scores that lie with the keys down and the
// queries across, so that a vector holds one key's scores for neighbouring queries and no sum runs across a
// vector. Every product then reads its operands where they lie: nothing is packed but the queries, once for
// each block of them. Method: Dao et al., FlashAttention (NeurIPS 2022).
namespace weft::native {

inline constexpr int64_t kQueries = 96, kKeys = 64;
/// Columns of a block of `rows` queries: whole vectors of any machine.
inline int64_t columns_of(int64_t rows) { return (rows + 15) / 16 * 16; }

/// Which axes of q, k, v and y count heads and places.
struct HeadAxes {
  int64_t heads, seq;

  explicit HeadAxes(const backend::OpCall& c) : heads(c.input(0).rank() - 3), seq(heads + 1) {
    if (c.attr("seq_first").integer() != 0) std::swap(heads, seq);
  }
};

struct AttentionSizes {
  int64_t batches, heads, kv_heads, seq_q, seq_k, dim, width;
  float scale;
  bool causal, seq_first;
  backend::TensorView length;  // how many keys count, of all batches or of each; absent: all do

  explicit AttentionSizes(const backend::Launch& l) : length(l.input(l.call().n_inputs() - 1)) {
    const backend::TensorView q = l.input(0), k = l.input(1), v = l.input(2);
    const int64_t rank = q.rank();
    const HeadAxes axes(l.call());
    heads = q.dim(axes.heads), seq_q = q.dim(axes.seq), dim = q.dim(rank - 1);
    kv_heads = k.dim(axes.heads), seq_k = k.dim(axes.seq), width = v.dim(rank - 1);
    seq_first = axes.seq < axes.heads;
    batches = 1;
    for (int64_t i = 0; i < rank - 3; ++i) batches *= q.dim(i);
    const double given = l.call().attr("scale").real(0);
    scale = static_cast<float>(given != 0 ? given : 1 / std::sqrt(static_cast<double>(dim)));
    causal = l.call().attr("causal").integer() != 0;
  }
  int64_t query_blocks() const { return (seq_q + kQueries - 1) / kQueries; }
  /// Key head of query head `h` (heads counted through all batches).
  int64_t key_head(int64_t h) const { return h / heads * kv_heads + h % heads / (heads / kv_heads); }
  /// Where row i of head h begins (heads counted through all batches): of q, y, k and v.
  int64_t query(int64_t h, int64_t i) const { return row(h, heads, i, seq_q, dim); }
  int64_t result(int64_t h, int64_t i) const { return row(h, heads, i, seq_q, width); }
  int64_t key(int64_t h, int64_t i) const { return row(h, kv_heads, i, seq_k, dim); }
  int64_t value(int64_t h, int64_t i) const { return row(h, kv_heads, i, seq_k, width); }
  /// How far one row of a head is from the next.
  int64_t query_step() const { return seq_first ? heads * dim : dim; }
  int64_t result_step() const { return seq_first ? heads * width : width; }
  int64_t key_step() const { return seq_first ? kv_heads * dim : dim; }
  int64_t value_step() const { return seq_first ? kv_heads * width : width; }

  /// How many keys count for head `h`; it may be more than there are.
  int64_t keys(int64_t h) const {
    if (!length.has()) return seq_k;
    const int64_t at = length.rank() == 0 ? 0 : h / heads;
    return length.dtype() == DType::i32 ? length.data<int32_t>()[at] : length.data<int64_t>()[at];
  }
  /// How many keys query i sees where `keys` count: with `causal` the queries stand at the end of those.
  int64_t seen(int64_t i, int64_t keys) const {
    return std::clamp<int64_t>(causal ? i + 1 + keys - seq_q : keys, 0, seq_k);
  }

 private:
  int64_t row(int64_t h, int64_t n_heads, int64_t i, int64_t seq, int64_t size) const {
    return (seq_first ? (h / n_heads * seq + i) * n_heads + h % n_heads : h * seq + i) * size;
  }
};

/// One head of one sequence: where its rows lie in the operands (element of the first, and how far one is
/// from the next), and how many count.
struct AttentionHead {
  struct Rows {
    backend::TensorView of;
    int64_t at, step;
  };
  Rows q, k, v, y;
  float* lse;  ///< of the first query; may be null
  int64_t queries, capacity, dim, width;
  int64_t keys;  ///< how many count; it may be more than there are
  float scale;
  bool causal;

  /// How many keys query i sees: with `causal` the queries stand at the end of the keys.
  int64_t seen(int64_t i) const {
    return std::clamp<int64_t>(causal ? i + 1 + keys - queries : keys, 0, capacity);
  }
};
inline constexpr int64_t kFewQueries = 4;
/// Query i, against keys and values that pass by once, where they lie: for a few queries.
void attend_one(const AttentionHead& head, int64_t i);
/// A block of up to kQueries queries, from i on.
void attend_block(const AttentionHead& head, int64_t i);

/// Head h of a call (heads counted through all batches).
inline AttentionHead head_of(const AttentionSizes& s, const backend::Launch& l, int64_t h) {
  const int64_t kv = s.key_head(h);
  return {.q = {l.input(0), s.query(h, 0), s.query_step()},
          .k = {l.input(1), s.key(kv, 0), s.key_step()},
          .v = {l.input(2), s.value(kv, 0), s.value_step()},
          .y = {l.output(0), s.result(h, 0), s.result_step()},
          .lse = l.output(1).data<float>() + h * s.seq_q,
          .queries = s.seq_q,
          .capacity = s.seq_k,
          .dim = s.dim,
          .width = s.width,
          .keys = s.keys(h),
          .scale = s.scale,
          .causal = s.causal};
}

/// All: f32, or forward f16 and bf16 too; without a mask, of at least one head; a gradient without a length.
/// `optional` is the position of the mask.
inline backend::Support accepts_attention(const backend::OpCall& c, int64_t optional) {
  using backend::Support, backend::TypeView;
  const int64_t outputs = optional == 3 ? 2 : 3;
  if (c.n_inputs() != optional + 2 || c.n_outputs() != outputs)
    return Support::no("has {} inputs and {} outputs", c.n_inputs(), c.n_outputs());
  const DType dtype = c.output(0).dtype();
  if (dtype != DType::f32 && (optional != 3 || (dtype != DType::f16 && dtype != DType::bf16)))
    return Support::no("does not compute in {}", dtype);
  for (int64_t i = 0; i < optional; ++i) {
    if (!c.input(i).has() || c.input(i).dtype() != dtype) return Support::no("input {} must be {}", i, dtype);
    const int64_t axes = i == 4 ? 2 : 3;  // lse has no last axis
    if (c.input(i).rank() < axes) return Support::no("input {} has {} axes", i, c.input(i).rank());
  }
  for (int64_t i = 1; i < outputs; ++i)
    if (c.output(i).dtype() != DType::f32) return Support::no("output {} must be f32", i);
  if (c.input(0).shape().back().max() == 0) return Support::no("queries must have elements");
  if (c.input(1).max()[static_cast<size_t>(HeadAxes(c).heads)] == 0)
    return Support::no("there must be a head");
  if (c.input(optional).has()) return Support::no("masks are not for this kernel");
  const TypeView length = c.input(optional + 1);
  if (!length.has()) return Support::yes();
  if (optional != 3) return Support::no("a length is not for this kernel");
  const auto each = c.input(0).max().first(static_cast<size_t>(c.input(0).rank() - 3));
  if ((length.dtype() != DType::i32 && length.dtype() != DType::i64) ||
      !(length.rank() == 0 || std::ranges::equal(length.max(), each)))
    return Support::no("length must be whole numbers, one or {}", each);
  return Support::yes();
}

/// to[d, q] = scale * from[q, d] for `rows` queries that are `step` apart, and zeros in the columns beyond
/// them.
inline void transpose_queries(const float* from, int64_t step, int64_t rows, int64_t dim, float scale,
                              float* to) {
  const int64_t columns = columns_of(rows);
  for (int64_t q = 0; q < rows; ++q)
    for (int64_t d = 0; d < dim; ++d) to[d * columns + q] = scale * from[q * step + d];
  for (int64_t d = 0; d < dim && rows < columns; ++d)
    std::fill(to + d * columns + rows, to + (d + 1) * columns, 0.0f);
}

/// `rows` rows of n zeros that are `step` apart.
inline void clear_rows(float* to, int64_t step, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) std::fill_n(to + r * step, n, 0.0f);
}

/// Scores of keys [j, j + keys) become -inf for the queries that may not see them, the first of which sees no
/// key behind `last`, and each one after it one more.
inline void hide_unseen(int64_t last, int64_t columns, int64_t j, int64_t keys, float* scores) {
  for (int64_t r = 0; r < keys; ++r)
    std::fill_n(scores + r * columns, std::clamp<int64_t>(j + r - last, 0, columns), -HUGE_VALF);
}

}  // namespace weft::native
