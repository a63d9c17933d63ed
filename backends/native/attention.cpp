#include "backends/native/attention.h"

#include <cstring>

#include "backends/native/gemm.h"
#include "backends/native/halves.h"
#include "backends/native/row_launch.h"
#include "backends/native/rows.h"
#include "backends/native/scratch.h"

namespace weft::native {
namespace {

using backend::TensorView;

/// scores[j] = query . key j.
void score(const AttentionHead& h, const float* query, int64_t seen, float* scores) {
  const Stored type = stored_float(h.k.of.dtype());
  if (type != Stored::f32)
    return half_dots(type, query, 1, h.k.of.data<uint16_t>() + h.k.at, h.k.step, seen, h.dim, scores, seen);
  multiply(Product<float>{.m = 1,
                          .n = seen,
                          .k = h.dim,
                          .a = query,
                          .a_row = h.dim,
                          .b = h.k.of.data<float>() + h.k.at,
                          .b_row = 1,
                          .b_column = h.k.step,
                          .c = scores,
                          .c_row = seen});
}

/// y = the values, weighted by `scores`.
void mix(const AttentionHead& h, const float* scores, int64_t seen, float* y) {
  const Stored type = stored_float(h.v.of.dtype());
  if (type != Stored::f32)
    return half_sums(type, scores, h.v.of.data<uint16_t>() + h.v.at, h.v.step, seen, h.width, y);
  multiply(Product<float>{.m = 1,
                          .n = h.width,
                          .k = seen,
                          .a = scores,
                          .a_row = seen,
                          .b = h.v.of.data<float>() + h.v.at,
                          .b_row = h.v.step,
                          .c = y,
                          .c_row = h.width});
}

/// Rows of an operand: copied to f32, or in place.
struct Rows {
  const float* data;
  int64_t step;
};
/// `rows` rows of n elements from row i; halves are widened into `to`.
Rows rows_of(const AttentionHead::Rows& r, int64_t i, int64_t rows, int64_t n, float* to) {
  const Stored type = stored_float(r.of.dtype());
  const int64_t at = r.at + i * r.step;
  if (type == Stored::f32) return {r.of.data<float>() + at, r.step};
  for (int64_t j = 0; j < rows; ++j) widen(type, r.of.data<uint16_t>() + at + j * r.step, to + j * n, n);
  return {to, n};
}

/// Masks scores of keys [j, j + keys) for `rows` queries from i.
void mask_scores(const AttentionHead::Mask& m, int64_t i, int64_t rows, int64_t columns, int64_t j,
                 int64_t keys, float* scores) {
  for (int64_t q = 0; q < rows; ++q) {
    const int64_t at = (i + q) * m.query + j * m.key;
    if (m.added) {
      for (int64_t k = 0; k < keys; ++k) scores[k * columns + q] += m.added[at + k * m.key];
      continue;
    }
    const uint8_t* truth = m.truth + at;
    if (m.key == 1 && !std::memchr(truth, 0, static_cast<size_t>(keys))) continue;  // sees all of them
    for (int64_t k = 0; k < keys; ++k)
      if (!truth[k * m.key]) scores[k * columns + q] = -HUGE_VALF;
  }
}

}  // namespace

backend::Support accepts_mask(const backend::OpCall& c, backend::TypeView mask) {
  using backend::Support;
  const backend::TypeView q = c.input(0), k = c.input(1);
  if (q.dtype() != DType::f32) return Support::no("masks are for f32 here, got {}", q.dtype());
  if (mask.dtype() != DType::boolean && mask.dtype() != DType::f32)
    return Support::no("a mask must be bool or f32, got {}", mask.dtype());
  if (mask.rank() > q.rank()) return Support::no("the mask has {} axes, q has {}", mask.rank(), q.rank());
  return k.rank() == q.rank() ? Support::yes()
                              : Support::no("q and k have {} and {} axes", q.rank(), k.rank());
}

AttentionHead::Mask mask_of(const AttentionSizes& s, const backend::Launch& l, int64_t h) {
  const TensorView mask = l.input(3), q = l.input(0);
  AttentionHead::Mask m;
  if (!mask.has()) return m;
  const auto step = [&](int64_t axis, int64_t size) {  // counted from the last; 0 where one is for all
    return axis >= mask.rank() || mask.dim(mask.rank() - 1 - axis) == 1 ? int64_t{0} : size;
  };
  const auto size = [&](int64_t axis) { return axis < mask.rank() ? mask.dim(mask.rank() - 1 - axis) : 1; };
  m.key = step(0, 1), m.query = step(1, size(0));
  int64_t from = h % s.heads * step(2, size(0) * size(1)), batch = h / s.heads,
          length = size(0) * size(1) * size(2);
  for (int64_t axis = 3; axis < q.rank(); ++axis) {
    const int64_t of_q = q.dim(q.rank() - 1 - axis);
    from += batch % of_q * step(axis, length);
    batch /= of_q, length *= size(axis);
  }
  if (mask.dtype() == DType::f32)
    m.added = mask.data<float>() + from;
  else
    m.truth = reinterpret_cast<const uint8_t*>(mask.data()) + from;
  return m;
}

void attend_one(const AttentionHead& h, int64_t i) {
  const Stored type = stored_float(h.q.of.dtype());
  const int64_t seen = h.seen(i), q = h.q.at + i * h.q.step, result = h.y.at + i * h.y.step;
  float* query = scratch<float>(Scratch::columns, h.dim);
  float* scores =
      scratch<float>(Scratch::scores, h.capacity);  // for the capacity: it must not grow with every token
  float* y = type == Stored::f32 ? h.y.of.data<float>() + result : scratch<float>(Scratch::rows, h.width);
  if (type != Stored::f32) widen(type, h.q.of.data<uint16_t>() + q, query, h.dim);
  affine(type == Stored::f32 ? h.q.of.data<float>() + q : query, 0, h.scale, nullptr, nullptr, query, h.dim);
  score(h, query, seen, scores);
  const float most = max(scores, seen);
  double total = 0;
  if (most == -HUGE_VALF) {  // a query that sees nothing gives zeros
    std::fill_n(y, h.width, 0.0f);
  } else {
    total = exp_of_row(scores, most, scores, seen);
    mix(h, scores, seen, y);
    affine(y, 0, static_cast<float>(1 / total), nullptr, nullptr, y, h.width);
  }
  if (h.lse) h.lse[i] = most == -HUGE_VALF ? most : most + static_cast<float>(std::log(total));
  if (type != Stored::f32) narrow(type, y, h.y.of.data<uint16_t>() + result, h.width);
}

// Processes keys in blocks, with a running maximum and sum for each query.
void attend_block(const AttentionHead& h, int64_t i) {
  const int64_t rows = std::min(kQueries, h.queries - i), columns = columns_of(rows);
  const Stored type = stored_float(h.y.of.dtype());
  const bool halves = type != Stored::f32;
  // For halves: a block of the result, and one of queries, keys or values.
  float* widened =
      halves ? scratch<float>(Scratch::rows, kQueries * (h.width + std::max(h.dim, h.width))) : nullptr;
  const int64_t result = h.y.at + i * h.y.step;
  float* y = halves ? widened : h.y.of.data<float>() + result;
  float* block = halves ? widened + kQueries * h.width : nullptr;
  const int64_t y_step = halves ? h.width : h.y.step;
  float* queries = scratch<float>(Scratch::columns, kQueries * h.dim);
  float* scores = scratch<float>(Scratch::scores, kKeys * kQueries);
  const Rows q = rows_of(h.q, i, rows, h.dim, block);
  transpose_queries(q.data, q.step, rows, h.dim, h.scale, queries);
  alignas(64) float most[kQueries], total[kQueries], factor[kQueries];
  std::fill_n(most, kQueries, -HUGE_VALF), std::fill_n(total, kQueries, 0.0f);
  clear_rows(y, y_step, rows, h.width);
  const int64_t seen = h.seen(i + rows - 1);
  for (int64_t j = 0; j < seen; j += kKeys) {
    const int64_t keys = std::min(kKeys, seen - j);
    const Rows k = rows_of(h.k, j, keys, h.dim, block);
    multiply(Product<float>{.m = keys,
                            .n = columns,
                            .k = h.dim,
                            .a = k.data,
                            .a_row = k.step,
                            .b = queries,
                            .b_row = columns,
                            .c = scores,
                            .c_row = columns});
    if (h.causal) hide_unseen(i - h.queries + h.keys, columns, j, keys, scores);
    if (h.mask.truth || h.mask.added) mask_scores(h.mask, i, rows, columns, j, keys, scores);
    softmax_columns(scores, keys, columns, most, total, factor);
    if (j > 0)
      for (int64_t r = 0; r < rows; ++r)
        if (factor[r] != 1) affine(y + r * y_step, 0, factor[r], nullptr, nullptr, y + r * y_step, h.width);
    const Rows v = rows_of(h.v, j, keys, h.width, block);
    multiply(Product<float>{.m = rows,
                            .n = h.width,
                            .k = keys,
                            .a = scores,
                            .a_row = 1,
                            .a_column = columns,
                            .b = v.data,
                            .b_row = v.step,
                            .c = y,
                            .c_row = y_step,
                            .accumulate = j > 0});
  }
  for (int64_t r = 0; r < rows; ++r) {
    // A query that sees nothing gives zeros.
    const bool none = total[r] == 0;
    if (h.lse) h.lse[i + r] = none ? -HUGE_VALF : most[r] + std::log(total[r]);
    affine(y + r * y_step, 0, none ? 0 : 1 / total[r], nullptr, nullptr, y + r * y_step, h.width);
    if (halves) narrow(type, y + r * y_step, h.y.of.data<uint16_t>() + result + r * h.y.step, h.width);
  }
}

}  // namespace weft::native
