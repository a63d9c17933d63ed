#pragma once
#include "attention_split_elements.hpp"

// The gradients of attention of f32 for warpgroups, each number as three bf16, in one pass over the scores: a
// block of one warpgroup takes 64 keys through the queries that see them, 64 at a time. Its dk and dv stay in
// registers. What a step adds to dq goes to a place of its own in memory, and another kernel adds these up in
// the order of the keys: so no sum depends on the order in which blocks run.
//
// Rows of scores are keys, so that weights and their gradients are left factors in registers of the products
// that make dv and dk. For dq queries are the rows: gradients take the place of dy in shared memory, and are
// read across. A block has the queries' tiles once and two blocks run at a time on a multiprocessor: while
// one splits numbers, the other one multiplies. Every product of a step runs beside what does not need it.
namespace weft::cuda::hopper {

struct SplitDifferentiator {
  SplitGradShared& shared;
  const SplitGradWork& w;
  const SplitGradTile t;
  SplitGradStep s{};
  float size = 0;  ///< as split_plain has it, of all numbers so far
  float dk[32], dv[32], scores[32];

  /// Rows of a step: those of q are in shared memory, those of dy and y here.
  __device__ void set_rows(const SplitFetch& dy, const SplitFetch& y, float lse) {
    if (thread_of_group() < kTile) shared.rows[thread_of_group()].shift = shift_of(lse);
#pragma unroll
    for (int i = 0; i < SplitFetch::kRows; ++i) {
      const float delta = sum_of<8>(dy.dot(y, i));
      if (SplitFetch::piece() == 0)
        shared.rows[SplitFetch::row() + i * SplitFetch::kRowsAtOnce].delta = delta;
    }
  }
  /// The scores of a step, while dy's parts are stored.
  __device__ void make_scores(const SplitFetch& dy) {
    float less[32];
    show_shared_writes();
    sync_block();
    multiply_tiles<Lies::along_k, Lies::along_k>(scores, less, shared.k, shared.q,
                                                 [&](int k) { store_parts(shared.dy, dy, k, size); });
    show_shared_writes();
    wait_for_products<0>();
    hold(scores);
    add_products(scores, less);
    sync_block();
  }

  /// The keys, and the first queries.
  __device__ void begin() {
    const AttentionSizes& of = w.sizes;
    SplitFetch a, b;
    a.load(w.k + t.at_k, of.rows_of_k(), t.first_key), b.load(w.v + t.at_k, of.rows_of_k(), t.first_key);
    store_parts(shared.k, a, size);
    s = first_step(w, t);
    a.load(w.q + s.at_q, of.rows_of_q(), s.first);
    const float lse = lse_of(w, s, thread_of_group());
    store_parts(shared.v, b, size);
    b.load(w.dy + s.at_q, of.rows_of_q(), s.first);
    store_parts(shared.q, a, size);
    a.load(w.y + s.at_q, of.rows_of_q(), s.first);
    set_rows(b, a, lse);
    make_scores(b);
#pragma unroll
    for (int i = 0; i < 32; ++i) dk[i] = dv[i] = 0;
  }

  __device__ static int column(int i) { return i / 4 * 8 + column_of_thread(); }
  /// Of 16 columns: scores become weights, those of queries that do not see the key 0.
  __device__ void weigh(int k, int seen) {
#pragma unroll
    for (int i = 8 * k; i < 8 * k + 8; i += 4) {
      const float left = shared.rows[column(i)].shift, right = shared.rows[column(i) + 1].shift;
#pragma unroll
      for (int r = 0; r < 4; r += 2) {
        scores[i + r] = expf(scores[i + r] * w.sizes.scale - left) * kWeightScale;
        scores[i + r + 1] = expf(scores[i + r + 1] * w.sizes.scale - right) * kWeightScale;
      }
    }
    if (seen >= kTile && t.first_key + kTile <= w.sizes.seq_k) return;
    const int row = row_of_thread();
#pragma unroll
    for (int i = 8 * k; i < 8 * k + 8; ++i) {
      const int key = row + 8 * (i / 2 % 2);
      if (key >= seen + column(i) + i % 2 || t.first_key + key >= w.sizes.seq_k) scores[i] = 0;
    }
  }
  /// dp becomes the gradient of the scores.
  __device__ void take_gradients(float (&dp)[32]) {
#pragma unroll
    for (int i = 0; i < 32; i += 4) {
      const float left = shared.rows[column(i)].delta, right = shared.rows[column(i) + 1].delta;
#pragma unroll
      for (int r = 0; r < 4; r += 2) {
        dp[i + r] = scores[i + r] * (dp[i + r] - left);
        dp[i + r + 1] = scores[i + r + 1] * (dp[i + r + 1] - right);
      }
    }
  }
  __device__ void write_piece(const float (&x)[32]) {
    auto* const at = reinterpret_cast<float4*>(piece_of(w, t, s)) + thread_of_group();
#pragma unroll
    for (int i = 0; i < 8; ++i) at[i * kGroupThreads] = {x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]};
  }

  /// From the scores to dv, and to gradients in the place of dy. dk's products go on: main, less.
  __device__ void add_to_keys(float (&main)[32], float (&less)[32], SplitFactor& gradients) {
    float ds[32];
    SplitFactor weights;
    const int seen = w.sizes.causal ? s.first - t.behind - t.first_key + 1 : kTile;
    multiply_tiles<Lies::along_k, Lies::along_k>(ds, less, shared.v, shared.dy, [&](int k) {
      weigh(k, seen);
      weights.set(scores, k, size);
    });
    wait_for_products<0>();
    hold(ds);
    add_products(ds, less);
    begin_products();
#pragma unroll
    for (int k = 0; k < kSlices; ++k) weights.multiply<true>(main, shared.dy, k);
    end_of_products();
    take_gradients(ds);
    wait_for_products<0>();
    add_products(dv, main);
    begin_products();
#pragma unroll
    for (int k = 0; k < kSlices; ++k) weights.multiply<false>(less, shared.dy, k), gradients.set(ds, k, size);
    end_of_products();
    wait_for_products<0>();
    add_products(dv, less);
    sync_block();  // nobody reads dy any more
    begin_products();
#pragma unroll
    for (int k = 0; k < kSlices; ++k) {
      gradients.multiply<true>(main, shared.q, k), gradients.multiply<false>(less, shared.q, k);
      gradients.store(shared.dy, k);
    }
    end_of_products();
    show_shared_writes();
    sync_block();
  }

  /// One step, whose scores are there; then the next one's.
  __device__ void step(bool last) {
    const RowsOfHead rows = w.sizes.rows_of_q();
    float of_keys[32], of_queries[32], less[32];
    {
      SplitFactor gradients;
      add_to_keys(less, of_keys, gradients);
      wait_for_products<0>();
      add_products(dk, less), add_products(dk, of_keys);
    }
    multiply_tiles<Lies::along_m, Lies::along_m>(of_queries, less, shared.dy, shared.k, [](int) {});
    if (last) {
      wait_for_products<0>();
      hold(of_queries);
      add_products(of_queries, less);
      write_piece(of_queries);
      return;
    }
    const SplitGradStep next = step_after(s, w, t);
    {
      SplitFetch q;
      q.load(w.q + next.at_q, rows, next.first);
      sync_block();  // nobody reads q any more
      store_parts(shared.q, q, size);
    }
    wait_for_products<0>();
    hold(of_queries);
    add_products(of_queries, less);
    write_piece(of_queries);
    SplitFetch dy, y;
    dy.load(w.dy + next.at_q, rows, next.first), y.load(w.y + next.at_q, rows, next.first);
    set_rows(dy, y, lse_of(w, next, thread_of_group()));
    s = next;
    make_scores(dy);
  }

  __device__ void set_rows_by_elements() {
    if (const int i = thread_of_group(); i < kTile) {
      float delta = 0;
      if (s.first + i < w.sizes.seq_q)
#pragma unroll 1
        for (int d = 0; d < w.sizes.dim; ++d) {
          const int64_t at = s.at_q + (s.first + i) * w.sizes.q.row + d;
          delta = fmaf(w.y[at], w.dy[at], delta);
        }
      shared.rows[i] = {shift_of(lse_of(w, s, i)), delta};
    }
    sync_block();
  }
  /// All steps again, by multiply-adds.
  __device__ void repeat_by_elements() {
    auto* const room = reinterpret_cast<float*>(shared.q);
    static_assert(2 * kSplitTileBytes == 3 * kPieceFloats * sizeof(float));
    float x[32];
    const auto add_up = [&](StepSum which) {
      const SplitGradTile tile = t;  // copies: what has an address is not in registers
      const SplitGradStep step = s;
      add_up_elements(w, tile, step, shared.rows, room, which);
#pragma unroll
      for (int i = 0; i < 32; ++i)
        x[i] = room[2 * kPieceFloats + (row_of_thread() + 8 * (i / 2 % 2)) * kTile + column(i) + i % 2] *
               kWeightScale;
      sync_block();
    };
#pragma unroll
    for (int i = 0; i < 32; ++i) dk[i] = dv[i] = 0;
#pragma unroll 1
    for (int step = 0; step < t.steps; ++step) {
      s = step == 0 ? first_step(w, t) : step_after(s, w, t);
      set_rows_by_elements();
      add_up(StepSum::values);
#pragma unroll
      for (int i = 0; i < 32; ++i) dv[i] += x[i];
      add_up(StepSum::keys);
#pragma unroll
      for (int i = 0; i < 32; ++i) dk[i] += x[i];
      add_up(StepSum::queries);
      write_piece(x);
    }
  }
};

static __global__ void __launch_bounds__(kGroupThreads, 2)
    split_gradients(const __grid_constant__ SplitGradWork w) {
  extern __shared__ __align__(1024) char split_grad_shared[];
  const AttentionSizes& of = w.sizes;
  SplitDifferentiator d{*reinterpret_cast<SplitGradShared*>(split_grad_shared), w,
                        split_tile(w, static_cast<int>(blockIdx.x))};
  wait_for_kernels_before();
  if (d.t.steps > 0) {
    d.begin();
  } else {
#pragma unroll
    for (int i = 0; i < 32; ++i) d.dk[i] = d.dv[i] = 0;
  }
  let_next_kernel_start();
#pragma unroll 1
  for (int i = 0; i < d.t.steps; ++i) d.step(i + 1 == d.t.steps);
  if (any_of_block(!parts_hold(d.size))) d.repeat_by_elements();
  write_rows(w.dk + d.t.at_k, of.k.row, d.dk, d.t.first_key, of.seq_k, of.dim, of.scale / kWeightScale);
  write_rows(w.dv + d.t.at_k, of.k.row, d.dv, d.t.first_key, of.seq_k, of.dim, 1 / kWeightScale);
}

}  // namespace weft::cuda::hopper
