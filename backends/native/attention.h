#pragma once
#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/native/steps.h"
#include "weft/backend.hpp"

// Shared by the attention kernels: sizes of a call, and blocks of scores with a row for each key and a column
// for each query, so a vector holds one key's scores for neighbouring queries and no sum crosses lanes.
// Products then read their operands in place; only the queries are packed, once for each block of them.
// Method: Dao et al., FlashAttention (NeurIPS 2022).
namespace weft::native {

inline constexpr int64_t kQueries = 96, kKeys = 64;
/// Columns of a block of `rows` queries: whole vectors of any machine.
inline int64_t columns_of(int64_t rows) { return (rows + 15) / 16 * 16; }

/// The axes of heads and of positions in q, k, v and y.
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
  backend::TensorView length;  // the number of keys, one for all batches or one each; absent: all keys

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
  /// The key head of query head `h`. Heads are numbered through all batches.
  int64_t key_head(int64_t h) const { return h / heads * kv_heads + h % heads / (heads / kv_heads); }
  /// The offset of row i of head h in q, y, k and v.
  int64_t query(int64_t h, int64_t i) const { return row(h, heads, i, seq_q, dim); }
  int64_t result(int64_t h, int64_t i) const { return row(h, heads, i, seq_q, width); }
  int64_t key(int64_t h, int64_t i) const { return row(h, kv_heads, i, seq_k, dim); }
  int64_t value(int64_t h, int64_t i) const { return row(h, kv_heads, i, seq_k, width); }
  /// The distance between rows of a head.
  int64_t query_step() const { return seq_first ? heads * dim : dim; }
  int64_t result_step() const { return seq_first ? heads * width : width; }
  int64_t key_step() const { return seq_first ? kv_heads * dim : dim; }
  int64_t value_step() const { return seq_first ? kv_heads * width : width; }

  /// The number of keys for head `h`; may exceed the keys that exist.
  int64_t keys(int64_t h) const {
    if (!length.has()) return seq_k;
    const int64_t at = length.rank() == 0 ? 0 : h / heads;
    return length.dtype() == DType::i32 ? length.data<int32_t>()[at] : length.data<int64_t>()[at];
  }
  /// The number of keys that query i sees of `keys`: with `causal` the queries are the last of them.
  int64_t seen(int64_t i, int64_t keys) const {
    return std::clamp<int64_t>(causal ? i + 1 + keys - seq_q : keys, 0, seq_k);
  }

 private:
  int64_t row(int64_t h, int64_t n_heads, int64_t i, int64_t seq, int64_t size) const {
    return (seq_first ? (h / n_heads * seq + i) * n_heads + h % n_heads : h * seq + i) * size;
  }
};

/// One head of one sequence: offset and distance of its rows in the operands, and the number of rows.
struct AttentionHead {
  struct Rows {
    backend::TensorView of;
    int64_t at, step;
  };
  /// What the scores of this head are masked with, by truth or by addition; null for neither.
  struct Mask {
    const uint8_t* truth = nullptr;
    const float* added = nullptr;
    int64_t query = 0, key = 0;  // from one to the next
  };
  Rows q, k, v, y;
  float* lse;  ///< of the first query; may be null
  int64_t queries, capacity, dim, width;
  int64_t keys;  ///< how many count; it may be more than there are
  float scale;
  bool causal;
  Mask mask{};

  /// The number of keys that query i sees: with `causal` the queries are the last keys.
  int64_t seen(int64_t i) const {
    return std::clamp<int64_t>(causal ? i + 1 + keys - queries : keys, 0, capacity);
  }
};
inline constexpr int64_t kFewQueries = 4;
/// Query i, reading keys and values once, in place: for few queries.
void attend_one(const AttentionHead& head, int64_t i);
/// A block of up to kQueries queries, from i.
void attend_block(const AttentionHead& head, int64_t i);

/// Head h of a call.
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

/// The mask of a call, which broadcasts to [..., heads, seq_q, seq_k], for head h.
AttentionHead::Mask mask_of(const AttentionSizes& s, const backend::Launch& l, int64_t h);
/// Whether that mask is one for attend_block().
backend::Support accepts_mask(const backend::OpCall& c, backend::TypeView mask);

/// Accepts f32, forward f16 and bf16 too; at least one head, no length for a gradient. `optional` is
/// the position of the mask.
inline backend::Support accepts_attention(const backend::OpCall& c, int64_t optional, bool masks = false) {
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
  if (c.input(optional).has()) {
    if (!masks) return Support::no("masks are not for this kernel");
    if (auto s = accepts_mask(c, c.input(optional)); !s) return s;
  }
  const TypeView length = c.input(optional + 1);
  if (!length.has()) return Support::yes();
  if (optional != 3) return Support::no("a length is not for this kernel");
  const auto each = c.input(0).max().first(static_cast<size_t>(c.input(0).rank() - 3));
  if ((length.dtype() != DType::i32 && length.dtype() != DType::i64) ||
      !(length.rank() == 0 || std::ranges::equal(length.max(), each)))
    return Support::no("length must be whole numbers, one or {}", each);
  return Support::yes();
}

/// to[d, q] = scale * from[q, d] for `rows` queries that are `step` apart; zeros in the other columns.
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

/// Sets scores of keys [j, j + keys) to -inf for queries that may not see them. The first query sees keys up
/// to `last`, and each further one sees one key more.
inline void hide_unseen(int64_t last, int64_t columns, int64_t j, int64_t keys, float* scores) {
  for (int64_t r = 0; r < keys; ++r)
    std::fill_n(scores + r * columns, std::clamp<int64_t>(j + r - last, 0, columns), -HUGE_VALF);
}

}  // namespace weft::native
