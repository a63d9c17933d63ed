#pragma once
#include "rows.hpp"

// Rows of logits with a class each, and the sums of exponentials of which their losses are made.
namespace weft::cuda {

struct Classes {
  const void* of_rows;
  bool wide;  // 64-bit
  int64_t ignored;
  bool summed;  // nothing is divided by the number of rows

  __device__ int64_t of(int64_t row) const {
    return wide ? static_cast<const int64_t*>(of_rows)[row] : static_cast<const int32_t*>(of_rows)[row];
  }
};

/// The largest of some numbers, and the sum of exp(x - most).
struct RowExps {
  float most, sum;
};
/// Of both together.
__device__ inline RowExps sum_of_exps(const RowExps& a, const RowExps& b) {
  const float most = fmaxf(a.most, b.most), shift = most == -INFINITY ? 0 : most;
  return {most, a.sum * expf(a.most - shift) + b.sum * expf(b.most - shift)};
}

/// Of a row that threads keep.
template <class L>
__device__ RowExps exps_of(const Row<L>& row) {
  RowExps e{-INFINITY, 0};
  each<L>(row.columns, [&](At, float v) { e.most = fmaxf(e.most, v); }, row);
  e.most = over_row<L>(e.most, Largest());
  each<L>(row.columns, [&](At, float v) { e.sum += exp_for<typename L::T>(v - e.most); }, row);
  e.sum = over_row<L>(e.sum, Sum());
  return e;
}

/// A row that begins anywhere, which the threads of a block share: pieces where memory is aligned, and single
/// elements before the first and behind the last of them.
template <class T_, int kThreads_>
struct LongRow {
  using T = T_;
  static constexpr int kThreads = kThreads_, kWide = 16 / sizeof(T), kBatch = 4;
  using P = Piece<T, kWide>;

  __device__ LongRow(const T* at, int n) : begin(at), columns(n) {
    static_assert(kThreads >= 2 * kWide, "a thread takes one of the single elements");
    const int past = static_cast<int>(reinterpret_cast<uintptr_t>(at) % 16 / sizeof(T));
    head = past == 0 ? 0 : kWide - past < n ? kWide - past : n;
    pieces = (n - head) / kWide;
  }

  /// piece(column, P) and edge(column, element), for those of this thread. They may write there. `kept`: room
  /// for all pieces, where this thread keeps its own.
  template <class F, class G>
  __device__ void each(F piece, G edge, P* kept = nullptr) const {
    const int thread = static_cast<int>(threadIdx.x);
    for (int first = thread; first < pieces; first += kThreads * kBatch) {
      P read[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        if (const int p = first + i * kThreads; p < pieces)
          read[i] = *reinterpret_cast<const P*>(begin + head + p * kWide);
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        if (const int p = first + i * kThreads; p < pieces) {
          if (kept) kept[p] = read[i];
          piece(head + p * kWide, read[i]);
        }
    }
    at_edges(edge);
  }
  /// The same, of the pieces that this thread has kept.
  template <class F, class G>
  __device__ void each_kept(const P* kept, F piece, G edge) const {
#pragma unroll 4
    for (int p = static_cast<int>(threadIdx.x); p < pieces; p += kThreads) piece(head + p * kWide, kept[p]);
    at_edges(edge);
  }
  template <class G>
  __device__ void at_edges(G edge) const {
    const int thread = static_cast<int>(threadIdx.x),
              column = thread < head ? thread : thread + pieces * kWide;
    if (column < columns) edge(column, begin[column]);
  }

  const T* begin;
  int columns, head, pieces;
};

/// Adds n elements to the sum of exp(x - most).
template <class T, int n>
__device__ void add_exps(RowExps& e, const float (&x)[n]) {
  float most = e.most;
#pragma unroll
  for (int i = 0; i < n; ++i) most = fmaxf(most, x[i]);
  const float shift = most == -INFINITY ? 0 : most;  // no element of the row was above -infinity yet
  float sum = e.sum * exp_for<T>(e.most - shift);
#pragma unroll
  for (int i = 0; i < n; ++i) sum += exp_for<T>(x[i] - shift);
  e = {most, sum};
}

/// The same of a long row, from one reading, which may be kept.
template <class T, int kThreads>
__device__ RowExps exps_of(const LongRow<T, kThreads>& row,
                           typename LongRow<T, kThreads>::P* kept = nullptr) {
  using L = LongRow<T, kThreads>;
  using OfBlock = Layout<T, kThreads, 0, 1>;
  RowExps e{-INFINITY, 0};
  row.each(
      [&](int, const typename L::P& piece) {
        float x[L::kWide];
#pragma unroll
        for (int i = 0; i < L::kWide; ++i) x[i] = widened(piece.of[i]);
        add_exps<T>(e, x);
      },
      [&](int, T element) {
        const float x[] = {widened(element)};
        add_exps<T>(e, x);
      },
      kept);
  const float most = over_row<OfBlock>(e.most, Largest());
  e.sum *= expf(e.most - (most == -INFINITY ? 0 : most));
  return {most, over_row<OfBlock>(e.sum, Sum())};
}

/// The logit of the row's class; NaN of one outside the row.
template <class T>
__device__ float logit_of(const T* x, int64_t target, int columns) {
  return target < 0 || target >= columns ? NAN : widened(x[target]);
}
__device__ inline float loss_of_target(const RowExps& e, float logit) {
  return logf(e.sum) - (logit - e.most);
}

}  // namespace weft::cuda
