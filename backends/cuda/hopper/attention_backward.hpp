#pragma once
#include "attention_backward_work.hpp"

// The gradients of attention for warpgroups: each takes 64 keys, whose dk and dv stay in its registers,
// through the queries that see them. dq is added up in f32 in global memory, in an order that changes from
// run to run unless blocks take turns, and narrowed by a kernel of its own (Shah et al., FlashAttention-3,
// 2024).
namespace weft::cuda::hopper {

/// 128 keys, and the tiles of queries that see them, of each head that shares them.
struct BackwardTile {
  int first, kv_head, member, from, steps;
};
/// Of a step: the tile of queries, and the head, counted from the first one of the tile's.
struct BackwardStep {
  int q_tile, head = 0;
  __device__ void advance(const BackwardTile& t, int q_tiles) {
    if (++q_tile == q_tiles) q_tile = t.from, ++head;
  }
};

template <class B>
__device__ BackwardTile keys_of(const BackwardWork& w, int i) {
  const auto [rank, head] = w.order.place(i);
  const int of_member = w.sizes.heads / w.sizes.shared_by;
  BackwardTile t;
  t.first = rank * B::kKeys, t.member = head / of_member, t.kv_head = head % of_member;
  t.from = w.sizes.causal ? larger(0, t.first + w.sizes.seq_q - w.sizes.seq_k) / B::kQueries : 0;
  t.steps = larger(0, w.q_tiles - t.from) * w.sizes.shared_by;
  return t;
}

template <class B>
__device__ void copy_tiles(typename B::Shared& shared, const BackwardMaps& maps, const BackwardWork& w) {
  auto& b = shared.barriers;
  Slot<B::kStages> slot;
  Slot<B::kTiles> keys;
  for (int n = 0, i; (i = w.order.of_block(n)) < w.order.count(); ++n) {
    const BackwardTile t = keys_of<B>(w, i);
    BackwardStep step{t.from};
    const auto load = [&] {
      const int head = t.kv_head * w.sizes.shared_by + step.head, tile = step.q_tile;
      const int64_t row = ((t.member * int64_t{w.sizes.heads} + head) * w.q_tiles + tile) * B::kQueries;
      b.empty[slot.stage].wait(slot.phase ^ 1);
      Barrier &q = b.q_full[slot.stage], &dy = b.dy_full[slot.stage];
      q.arrive_expecting(B::QueryTile::kBytes + sizeof(float) * B::kQueries);
      load_panels<B::kQueries, B::kD, kGroupRows>(shared.q[slot.stage], maps.q, q, tile * B::kQueries, head,
                                                  t.member);
      load_bytes(shared.rows[slot.stage].lse, w.lse + row, sizeof(float) * B::kQueries, q);
      dy.arrive_expecting(B::QueryTile::kBytes + sizeof(float) * B::kQueries);
      load_panels<B::kQueries, B::kD, kGroupRows>(shared.dy[slot.stage], maps.dy, dy, tile * B::kQueries,
                                                  head, t.member);
      load_bytes(shared.rows[slot.stage].delta, w.delta + row, sizeof(float) * B::kQueries, dy);
      slot.advance(), step.advance(t, w.q_tiles);
    };
    if (t.steps > 0) load();
    Barrier& kv = b.kv_full[keys.stage];
    b.kv_empty[keys.stage].wait(keys.phase ^ 1);
    kv.arrive_expecting(2 * B::KeyTile::kBytes);
    load_panels<B::kKeys, B::kD, kGroupRows>(shared.k[keys.stage], maps.k, kv, t.first, t.kv_head, t.member);
    load_panels<B::kKeys, B::kD, kGroupRows>(shared.v[keys.stage], maps.v, kv, t.first, t.kv_head, t.member);
    keys.advance();
    for (int left = t.steps - 1; left > 0; --left) load();
  }
}

/// Of the two keys of a thread: the first query that sees each.
struct BackwardRows {
  int from[2];
};

/// Scores become weights.
template <class B>
__device__ void weigh(float (&s)[B::kQueries / 2], const float* lse, float scale, const BackwardRows& rows,
                      int first_query, bool all_visible) {
#pragma unroll
  for (int i = 0; i < B::kQueries / 2; i += 4) {
    const float2 base = *reinterpret_cast<const float2*>(lse + i * 2 + column_of_thread());
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      s[i + 2 * r] = power_of_two(fmaf(s[i + 2 * r], scale, -base.x));
      s[i + 2 * r + 1] = power_of_two(fmaf(s[i + 2 * r + 1], scale, -base.y));
    }
  }
  if (all_visible) return;
#pragma unroll
  for (int i = 0; i < B::kQueries / 2; ++i)
    if (first_query + i / 4 * 8 + column_of_thread() + i % 2 < rows.from[i / 2 % 2]) s[i] = 0;
}

/// dp becomes the gradient of the scores, from the weights s.
template <class B>
__device__ void take_gradients(float (&dp)[B::kQueries / 2], const float (&s)[B::kQueries / 2],
                               const float* delta) {
#pragma unroll
  for (int i = 0; i < B::kQueries / 2; i += 4) {
    const float2 of = *reinterpret_cast<const float2*>(delta + i * 2 + column_of_thread());
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      dp[i + 2 * r] = s[i + 2 * r] * (dp[i + 2 * r] - of.x);
      dp[i + 2 * r + 1] = s[i + 2 * r + 1] * (dp[i + 2 * r + 1] - of.y);
    }
  }
}

/// The rows of a warpgroup to shared memory, where products read them as a factor that lies along its rows.
template <class B>
__device__ void share(char (&to)[B::kParts][B::ScoreTile::kBytes],
                      const Factor<typename B::Element, B::kQueries, B::kParts>& ds, int group) {
  uint32_t first = swizzled(static_cast<uint32_t>(kGroupRows * group + row_of_thread()), 0) +
                   static_cast<uint32_t>(column_of_thread()) * 2;
  asm volatile("" : "+r"(first));  // else eight addresses are kept in registers from step to step
#pragma unroll
  for (int p = 0; p < B::kParts; ++p)
#pragma unroll
    for (int k = 0; k < B::kQueries / 16; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int eight = 2 * k + i / 2;
        *reinterpret_cast<uint32_t*>(to[p] + eight / 8 * B::ScoreTile::kPanelBytes +
                                     i % 2 * 8 * kSwizzledRow + (first ^ eight % 8 << 4)) = ds.part[p][k][i];
      }
}

/// 64 x 64 of dq = ds k over 128 keys: of 64 queries all columns, or of all queries 64 columns.
template <class B>
__device__ void multiply_queries(float (&dq)[32], const char (&ds)[B::kParts][B::ScoreTile::kBytes],
                                 const char* k, int group) {
  const uint32_t of_ds = B::kQueries == 128 ? group * B::ScoreTile::kPanelBytes : 0,
                 of_k = B::kD == 64 ? 0 : group * B::KeyTile::kPanelBytes;
  const uint64_t right = operand_at<Lies::along_m>(k + of_k);
#pragma unroll
  for (int p = 0; p < B::kParts; ++p) {
    const uint64_t left = operand_at<Lies::along_m>(ds[p] + of_ds);
#pragma unroll
    for (int i = 0; i < B::kKeys / 16; ++i)
      Product<typename B::Element, 64, Lies::along_m, Lies::along_m>::run(
          dq, left + i * kNextSixteen<Lies::along_m>, right + i * kNextSixteen<Lies::along_m>,
          p > 0 || i > 0);
  }
}

template <int n>
__device__ void add_to(float4* to, const float (&x)[n]) {
#pragma unroll
  for (int j = 0; j < n / 4; ++j)
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to + j * kGroupThreads), "f"(x[4 * j]),
                 "f"(x[4 * j + 1]), "f"(x[4 * j + 2]), "f"(x[4 * j + 3])
                 : "memory");
}

/// Adds floats of shared memory to global memory: a multiple of 16 bytes, at multiples of 16.
__device__ inline void add_bytes(void* to, const void* from, uint32_t bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}

/// Waits until so many tiles of keys have added to a piece of dq. By all threads of a warpgroup.
__device__ inline void wait_for_turn(const int* turns, int wanted, int barrier) {
  if (thread_of_group() == 0) {
    int found;
    do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(found) : "l"(turns) : "memory");
    while (found != wanted);
  }
  sync_threads(barrier, kGroupThreads);
}
/// Lets the next tile of keys add to it.
__device__ inline void end_turn(int* turns, int barrier) {
  sync_threads(barrier, kGroupThreads);
  if (thread_of_group() != 0) return;
  fence_device();
  asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(turns) : "memory");
}

/// Writes 64 rows by way of shared memory that nobody reads any more.
template <class B>
__device__ void stage_rows(char* shared, const float (&o)[B::kD / 2], float scale) {
#pragma unroll
  for (int i = 0; i < B::kD / 2; i += 2)
    *reinterpret_cast<uint32_t*>(
        shared + i / 32 * B::KeyTile::kPanelBytes +
        swizzled(static_cast<uint32_t>(row_of_thread() + 8 * (i / 2 % 2)), i / 4 % 8) +
        column_of_thread() * 2) = packed<typename B::Element>(o[i] * scale, o[i + 1] * scale);
}

/// A warpgroup that multiplies.
template <class B>
struct Differentiator {
  using T = typename B::Element;
  static constexpr int kEverybody = 1, kScoresFree = 2, kOwn = 3,  // barriers of threads
      kConsumers = B::kGroups * kGroupThreads;
  typename B::Shared& shared;
  const BackwardWork& w;
  const int group;
  const float scale = w.sizes.scale * 1.4426950408889634f;
  Slot<B::kStages> slot{};
  Slot<B::kTiles> keys{};
  int buffer = 0, turn = 0;
  int unmasked = 0;  ///< From this query on all of the keys are seen.
  BackwardRows rows;
  float dk[B::kD / 2], dv[B::kD / 2], s[B::kQueries / 2];

  __device__ char* own_k() const { return shared.k[keys.stage] + group * kGroupRows * kSwizzledRow; }
  __device__ char* own_v() const { return shared.v[keys.stage] + group * kGroupRows * kSwizzledRow; }

  __device__ void multiply_scores(int stage) {
    begin_products();
    multiply_rows<T, B::kQueries, B::kD>(s, own_k(), B::KeyTile::kPanelBytes, shared.q[stage]);
    end_of_products();
  }
  __device__ void multiply_gradients(float (&dp)[B::kQueries / 2]) {
    shared.barriers.dy_full[slot.stage].wait(slot.phase);
    begin_products();
    multiply_rows<T, B::kQueries, B::kD>(dp, own_v(), B::KeyTile::kPanelBytes, shared.dy[slot.stage]);
    end_of_products();
  }

  /// The first keys of this warpgroup, and the scores of the first queries.
  __device__ void begin(int first, bool has_steps) {
    const AttentionSizes& of = w.sizes;
    const int none = 1 << 30, behind = of.seq_q - of.seq_k;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int key = first + row_of_thread() + 8 * r;
      rows.from[r] = key >= of.seq_k ? none : of.causal ? key + behind : 0;
    }
    unmasked = first + kGroupRows > of.seq_k ? none : of.causal ? first + kGroupRows - 1 + behind : 0;
#pragma unroll
    for (int e = 0; e < B::kD / 2; ++e) dk[e] = dv[e] = 0;
    shared.barriers.kv_full[keys.stage].wait(keys.phase);
    if (!has_steps) return;
    shared.barriers.q_full[slot.stage].wait(slot.phase);
    multiply_scores(slot.stage);
    wait_for_products<0>();
    hold(s);
  }

  /// One tile of queries, whose scores are there. `piece`: where dq of this warpgroup is added, after so many
  /// tiles of keys as `rank` says.
  __device__ void step(int first_query, bool is_last, int64_t piece, int rank) {
    Factor<T, B::kQueries, B::kParts> weights, ds;
    float dp[B::kQueries / 2];
    if (B::kOverlaps) multiply_gradients(dp);
    weigh<B>(s, shared.rows[slot.stage].lse, scale, rows, first_query, first_query >= unmasked);
    weights.set(s);
    begin_products();
    multiply_across<T, B::kD>(dv, weights, shared.dy[slot.stage], true);
    end_of_products();
    if (!B::kOverlaps) {
      wait_for_products<0>();
      multiply_gradients(dp);
    }
    wait_for_products<(B::kOverlaps ? 1 : 0)>();
    hold(dp);
    take_gradients<B>(dp, s, shared.rows[slot.stage].delta);
    ds.set(dp);
    begin_products();
    multiply_across<T, B::kD>(dk, ds, shared.q[slot.stage], true);
    end_of_products();
    // The next scores, while gradients go to the other warpgroup. After the last step this product is of no
    // use, but a condition would make the compiler wait for all products before it.
    Slot<B::kStages> next = slot;
    next.advance();
    if (!is_last) shared.barriers.q_full[next.stage].wait(next.phase);
    multiply_scores(is_last ? slot.stage : next.stage);
    if (B::kBuffers == 1) sync_threads(kScoresFree, kConsumers);
    share<B>(shared.ds[buffer], ds, group);
    show_shared_writes();
    if (B::kAddsByCopies && thread_of_group() == 0) wait_until_read<0>();  // shared.dq may be written again
    sync_threads(kEverybody, kConsumers);
    wait_for_products<1>();  // dv and dk: the registers of their factors are free
    if (B::kWhole || turn == group) add_queries(piece, rank);
    wait_for_products<0>();
    hold(s);
    shared.barriers.empty[slot.stage].arrive();
    turn ^= 1, buffer = (buffer + 1) % B::kBuffers, slot = next;
  }
  __device__ void add_queries(int64_t piece, int rank) {
    float dq[32];
    begin_products();
    multiply_queries<B>(dq, shared.ds[buffer], shared.k[keys.stage], group);
    end_of_products();
    wait_for_products<0>();
    hold(dq);
    float4* to = w.dq + piece * 8 * kGroupThreads;
    if constexpr (B::kAddsByCopies) {
      if (!w.turns) return copy_queries(to, dq);
    }
    if (w.turns) wait_for_turn(w.turns + piece, rank, kOwn + group);
    add_to(to + thread_of_group(), dq);
    if (w.turns) end_turn(w.turns + piece, kOwn + group);
  }
  __device__ void copy_queries(float4* to, const float (&dq)[32]) {
    float4* own = shared.dq[group];
#pragma unroll
    for (int j = 0; j < 8; ++j)
      own[j * kGroupThreads + thread_of_group()] = {dq[4 * j], dq[4 * j + 1], dq[4 * j + 2], dq[4 * j + 3]};
    show_shared_writes();
    sync_threads(kOwn + group, kGroupThreads);
    if (thread_of_group() == 0) add_bytes(to, own, B::kPieceBytes), end_of_stores();
  }

  /// Writes dk and dv by way of the memory of k and v.
  __device__ void store(const BackwardMaps& maps, const BackwardTile& t) {
    hold(dk), hold(dv);
    sync_threads(kEverybody, kConsumers);  // nobody reads k any more
    stage_rows<B>(own_k(), dk, w.sizes.scale);
    stage_rows<B>(own_v(), dv, 1);
    show_shared_writes();
    sync_threads(kOwn + group, kGroupThreads);
    if (thread_of_group() != 0) return;
    for (int p = 0; p < B::kD / kPanel; ++p) {
      const int at = p * B::KeyTile::kPanelBytes, row = t.first + group * kGroupRows;
      store_tile(maps.dk, own_k() + at, p * kPanel, row, t.kv_head, t.member);
      store_tile(maps.dv, own_v() + at, p * kPanel, row, t.kv_head, t.member);
    }
    end_of_stores();
    wait_until_read<0>();
    shared.barriers.kv_empty[keys.stage].arrive();
  }
};

template <class B>
__device__ void go_through_queries(typename B::Shared& shared, const BackwardMaps& maps,
                                   const BackwardWork& w, int group) {
  Differentiator<B> d{shared, w, group};
  for (int n = 0, i; (i = w.order.of_block(n)) < w.order.count(); ++n) {
    const BackwardTile t = keys_of<B>(w, i);
    d.begin(t.first + group * kGroupRows, t.steps > 0);
    BackwardStep step{t.from};
    const int first_head = t.member * w.sizes.heads + t.kv_head * w.sizes.shared_by;
    for (int left = t.steps; left > 0; --left) {
      const int64_t tile = (first_head + step.head) * int64_t{w.q_tiles} + step.q_tile;
      const int64_t piece = tile * B::kPieces + (B::kWhole ? group : 0);
      d.step(step.q_tile * B::kQueries, left == 1, piece, t.first / B::kKeys);
      step.advance(t, w.q_tiles);
    }
    d.store(maps, t);
    d.keys.advance();
  }
  if (thread_of_group() == 0) wait_until_stored<0>();
}

template <class B>
__global__ void __launch_bounds__(B::kThreads, 1)
    attention_gradients(const __grid_constant__ BackwardMaps maps, const BackwardWork work) {
  auto* bytes = dynamic_shared<char>();
  auto& shared = *reinterpret_cast<typename B::Shared*>(
      bytes + (kTileAlignment - shared_address(bytes) % kTileAlignment) % kTileAlignment);
  auto& b = shared.barriers;
  if (threadIdx.x == 0) {
    for (int i = 0; i < B::kTiles; ++i) b.kv_full[i].init(1), b.kv_empty[i].init(B::kGroups);
    for (int i = 0; i < B::kStages; ++i)
      b.q_full[i].init(1), b.dy_full[i].init(1), b.empty[i].init(Differentiator<B>::kConsumers);
    show_barriers();
  }
  sync_block();
  wait_for_kernels_before();
  let_next_kernel_start();
  const int group = group_of_thread();
  if (group == B::kGroups) {
    give_registers<Registers<B::kGroups>::kCopy>();
    if (thread_of_group() == 0) copy_tiles<B>(shared, maps, work);
    return;
  }
  take_registers<Registers<B::kGroups>::kMultiply>();
  go_through_queries<B>(shared, maps, work, group);
}

}  // namespace weft::cuda::hopper
