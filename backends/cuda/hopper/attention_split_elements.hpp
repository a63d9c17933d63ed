#pragma once
#include "attention_split_work.hpp"

// One step of attention's gradients in f32 by multiply-adds, for values that three bf16 cannot represent:
// what it adds to dv, dk or dq, a tile in shared memory. Slow and rarely used.
namespace weft::cuda::hopper {

struct ElementsOfStep {
  const SplitGradWork& w;
  const SplitGradTile& t;
  const SplitGradStep& s;
  const SplitRow* rows;
  float *weights, *ds, *out;  ///< kPieceFloats each

  __device__ float of_queries(const float* x, int r, int d) const {
    const AttentionSizes& of = w.sizes;
    return s.first + r < of.seq_q && d < of.dim ? x[s.at_q + (s.first + r) * of.q.row + d] : 0;
  }
  __device__ float of_keys(const float* x, int r, int d) const {
    const AttentionSizes& of = w.sizes;
    return t.first_key + r < of.seq_k && d < of.dim ? x[t.at_k + (t.first_key + r) * of.k.row + d] : 0;
  }
  /// Rows are keys.
  __device__ void make_scores() const {
    const AttentionSizes& of = w.sizes;
    const int seen = of.causal ? s.first - t.behind - t.first_key + 1 : kTile;
#pragma unroll 1
    for (int i = thread_of_group(); i < kPieceFloats; i += kGroupThreads) {
      const int key = i / kTile, query = i % kTile;
      float score = 0, dp = 0;
#pragma unroll 1
      for (int d = 0; d < of.dim; ++d) {
        score = fmaf(of_keys(w.k, key, d), of_queries(w.q, query, d), score);
        dp = fmaf(of_keys(w.v, key, d), of_queries(w.dy, query, d), dp);
      }
      const float x = expf(score * of.scale - rows[query].shift), g = x * (dp - rows[query].delta);
      const bool visible = key < seen + query && t.first_key + key < of.seq_k;
      weights[i] = visible ? x : 0, ds[i] = visible ? g : 0;
    }
    sync_block();
  }
  /// out = the sums over j of f(row, j, column).
  template <class F>
  __device__ void add_up(F f) const {
#pragma unroll 1
    for (int i = thread_of_group(); i < kPieceFloats; i += kGroupThreads) {
      float sum = 0;
#pragma unroll 1
      for (int j = 0; j < kTile; ++j) sum = f(sum, i / kTile, j, i % kTile);
      out[i] = sum;
    }
    sync_block();
  }
};

enum class StepSum { values, keys, queries };

/// `values` comes first: it makes the scores. `room` has 3 * kPieceFloats.
static __device__ __noinline__ void add_up_elements(const SplitGradWork& w, const SplitGradTile& t,
                                                    const SplitGradStep& s, const SplitRow* rows, float* room,
                                                    StepSum which) {
  const ElementsOfStep e{w, t, s, rows, room, room + kPieceFloats, room + 2 * kPieceFloats};
  if (which == StepSum::values) {
    e.make_scores();
    e.add_up([&](float sum, int r, int j, int d) {
      return fmaf(e.weights[r * kTile + j], e.of_queries(w.dy, j, d), sum);
    });
  } else if (which == StepSum::keys) {
    e.add_up([&](float sum, int r, int j, int d) {
      return fmaf(e.ds[r * kTile + j], e.of_queries(w.q, j, d), sum);
    });
  } else {
    e.add_up(
        [&](float sum, int r, int j, int d) { return fmaf(e.ds[j * kTile + r], e.of_keys(w.k, j, d), sum); });
  }
}

}  // namespace weft::cuda::hopper
