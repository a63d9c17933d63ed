#pragma once
#include "attention_parts.hpp"

// Attention for warpgroups: one thread starts the copies of tiles, each of the other warpgroups takes 64
// queries through the keys that they see. While the scores of the next keys are multiplied, those before are
// weighed and mixed; warpgroups take turns, so that one weighs while another multiplies (Shah et al.,
// FlashAttention-3, 2024).
namespace weft::cuda::hopper {

/// kParts: in how many 16-bit parts weights are multiplied with v.
template <class T, int kDim, int kGroupsOfRows, int kKeysOfTile, int kStagesOfRing, int kPartsOfWeight,
          bool kTakesTurns = true>
struct Forward {
  using Element = T;
  static constexpr int kD = kDim, kGroups = kGroupsOfRows, kKeys = kKeysOfTile, kStages = kStagesOfRing,
                       kParts = kPartsOfWeight, kRows = kGroups * kGroupRows,
                       kTiles = 2,  // of queries: the next one comes while the results of the last one go
      kThreads = (kGroups + 1) * kGroupThreads;
  static constexpr bool kTurns = kTakesTurns && kGroups > 1;
  using Queries = Panels<kGroupRows, kD>;  // of one warpgroup
  using Keys = Panels<kKeys, kD>;
  /// f16 has few exponents: weights are multiplied by 2^14, which lse takes back.
  static constexpr float kShift = std::is_same_v<T, f16> ? 14 : 0;
  struct Barriers {
    Barrier q_full[kTiles], q_empty[kTiles], k_full[kStages], k_empty[kStages], v_full[kStages],
        v_empty[kStages];
  };
  struct Shared {
    char q[kTiles][kGroups][Queries::kBytes];
    char k[kStages][Keys::kBytes], v[kStages][Keys::kBytes];
    Barriers barriers;
  };
  static constexpr size_t kShared = sizeof(Shared) + kTileAlignment;
  static_assert(kShared <= 227 * 1024);
};

struct ForwardMaps {
  CUtensorMap q, k, v;
  StoreMap y;
};

struct ForwardWork {
  AttentionSizes sizes;
  float* lse;
  int* not_numbers;  ///< [heads, tiles of 64 queries, warps]: whether a result is NaN. Null: nobody asks
  TileOrder order;   ///< of tiles of queries
};

struct ForwardTile {
  int first, head, member, kv_head, key_tiles;
};

template <class F>
__device__ ForwardTile tile_of(const ForwardWork& w, int i) {
  const auto [rank, head] = w.order.place(i);
  ForwardTile t;
  t.first = (w.order.tiles - 1 - rank) * F::kRows;  // the last queries see the most keys
  t.member = head / w.sizes.heads, t.head = head % w.sizes.heads, t.kv_head = t.head / w.sizes.shared_by;
  const int seen = w.sizes.visible(smaller(t.first + F::kRows, w.sizes.seq_q) - 1);
  t.key_tiles = larger(1, (seen + F::kKeys - 1) / F::kKeys);
  return t;
}

template <class F>
__device__ void copy_tiles(typename F::Shared& shared, const ForwardMaps& maps, const ForwardWork& work) {
  auto& b = shared.barriers;
  Slot<F::kStages> slot;
  Slot<F::kTiles> tile;
  for (int n = 0, i; (i = work.order.of_block(n)) < work.order.count(); ++n) {
    const ForwardTile t = tile_of<F>(work, i);
    for (int j = t.key_tiles - 1; j >= 0; --j, slot.advance()) {
      b.k_empty[slot.stage].wait(slot.phase ^ 1);
      b.k_full[slot.stage].arrive_expecting(F::Keys::kBytes);
      load_panels<F::kKeys, F::kD>(shared.k[slot.stage], maps.k, b.k_full[slot.stage], j * F::kKeys,
                                   t.kv_head, t.member);
      if (j == t.key_tiles - 1) {
        b.q_empty[tile.stage].wait(tile.phase ^ 1);
        b.q_full[tile.stage].arrive_expecting(F::kGroups * F::Queries::kBytes);
        for (int g = 0; g < F::kGroups; ++g)
          load_panels<kGroupRows, F::kD>(shared.q[tile.stage][g], maps.q, b.q_full[tile.stage],
                                         t.first + g * kGroupRows, t.head, t.member);
        tile.advance();
      }
      b.v_empty[slot.stage].wait(slot.phase ^ 1);
      b.v_full[slot.stage].arrive_expecting(F::Keys::kBytes);
      load_panels<F::kKeys, F::kD>(shared.v[slot.stage], maps.v, b.v_full[slot.stage], j * F::kKeys,
                                   t.kv_head, t.member);
    }
  }
}

/// The rows of a thread: how many keys they see, and the base and sum of their weights 2^(score - base).
struct ForwardRows {
  int visible[2];
  float most[2], base[2], sum[2];
};

/// Scores become weights. Returns, in `old`, what the sums and results so far are to be multiplied by.
template <class F>
__device__ void weigh(float (&s)[F::kKeys / 2], ForwardRows& rows, float (&old)[2], float scale,
                      int first_key, bool all_visible) {
  if (!all_visible) {
#pragma unroll
    for (int i = 0; i < F::kKeys / 2; ++i)
      if (first_key + i / 4 * 8 + column_of_thread() + i % 2 >= rows.visible[i / 2 % 2]) s[i] = -INFINITY;
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float most = rows.most[r];
#pragma unroll
    for (int i = 0; i < F::kKeys / 2; i += 4) most = fmaxf(most, fmaxf(s[i + 2 * r], s[i + 2 * r + 1]));
    most = largest_of<4>(most);
    const float base = most == -INFINITY ? 0 : fmaf(most, scale, -F::kShift);
    old[r] = power_of_two(fminf(rows.base[r] - base, 0));
    rows.most[r] = most, rows.base[r] = base;
    float sum = rows.sum[r] * old[r];
#pragma unroll
    for (int i = 0; i < F::kKeys / 2; i += 4) {
      s[i + 2 * r] = power_of_two(fmaf(s[i + 2 * r], scale, -base));
      s[i + 2 * r + 1] = power_of_two(fmaf(s[i + 2 * r + 1], scale, -base));
      sum += s[i + 2 * r] + s[i + 2 * r + 1];
    }
    rows.sum[r] = sum;
  }
}

template <class F>
__device__ void finish_rows(const ForwardWork& work, const ForwardTile& t, const ForwardRows& rows, int first,
                            float (&inverse)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float sum = sum_of<4>(rows.sum[r]);
    inverse[r] = sum == 0 ? 0 : 1 / sum;
    const int query = first + 8 * r;
    if (column_of_thread() == 0 && query < work.sizes.seq_q)
      work.lse[(t.member * int64_t{work.sizes.heads} + t.head) * work.sizes.seq_q + query] =
          rows.base[r] * 0.6931471805599453f + logf(sum);
  }
}

/// Tells whether this warp has found a NaN. Of weights in several parts those after the first may be 0 or
/// have another sign, so that they make NaN of infinite values: such tiles are computed once more, by another
/// kernel.
template <class F>
__device__ void tell_not_numbers(const ForwardWork& work, const ForwardTile& t, int group,
                                 const float (&o)[F::kD / 2]) {
  bool any = false;
#pragma unroll
  for (int e = 0; e < F::kD / 2; ++e) any |= o[e] != o[e];
  const bool found = any_of_warp(any);
  const int tile = t.first / kGroupRows + group, tiles = (work.sizes.seq_q + kGroupRows - 1) / kGroupRows;
  if (tile >= tiles || thread_of_group() % kWarp != 0) return;
  const int64_t head = t.member * int64_t{work.sizes.heads} + t.head;
  work.not_numbers[(head * tiles + tile) * (kGroupThreads / kWarp) + thread_of_group() / kWarp] = found;
}

/// Writes the rows of a warpgroup, by way of the shared memory of its queries, which nobody reads any more.
template <class F>
__device__ void store_rows(char* shared, const StoreMap& y, const ForwardTile& t, int group,
                           const float (&o)[F::kD / 2], const float (&inverse)[2]) {
  const int barrier = 1 + F::kGroups + group;
  sync_threads(barrier, kGroupThreads);
#pragma unroll
  for (int i = 0; i < F::kD / 2; i += 2) {
    const int r = i / 2 % 2, piece = i / 4 % 8, panel = i / 32;
    *reinterpret_cast<uint32_t*>(shared + panel * F::Queries::kPanelBytes +
                                 swizzled(static_cast<uint32_t>(row_of_thread() + 8 * r), piece) +
                                 column_of_thread() * 2) =
        packed<typename F::Element>(o[i] * inverse[r], o[i + 1] * inverse[r]);
  }
  show_shared_writes();
  sync_threads(barrier, kGroupThreads);
  if (thread_of_group() != 0) return;
  for (int p = 0; p < F::kD / kPanel; ++p)
    store_tile(y, shared + p * F::Queries::kPanelBytes, p * kPanel, t.first + group * kGroupRows, t.head,
               t.member);
  end_of_stores();
  wait_until_read<0>();
}

/// A warpgroup that multiplies.
template <class F>
struct Mixer {
  using T = typename F::Element;
  typename F::Shared& shared;
  const int group;
  const float scale;  ///< of scores, for powers of two
  Slot<F::kStages> slot{};
  Slot<F::kTiles> tile{};
  ForwardRows rows;
  float s[F::kKeys / 2], o[F::kD / 2], old[2];
  Factor<T, F::kKeys, F::kParts> weights;

  /// One lane of each warp says that the warp has read a tile.
  __device__ static void release(Barrier& empty) {
    if (thread_of_group() % kWarp == 0) empty.arrive();
  }
  __device__ void take_turn() const {
    if (F::kTurns) sync_threads(1 + group, 2 * kGroupThreads);
  }
  __device__ void end_turn() const {
    if (F::kTurns) arrive_threads(1 + (group + 1) % F::kGroups, 2 * kGroupThreads);
  }

  __device__ void begin(const ForwardWork& work, int first) {
#pragma unroll
    for (int r = 0; r < 2; ++r)
      rows.visible[r] = work.sizes.visible(first + row_of_thread() + 8 * r), rows.most[r] = -INFINITY,
      rows.base[r] = 0, rows.sum[r] = 0;
    shared.barriers.q_full[tile.stage].wait(tile.phase);
  }
  __device__ void multiply_scores(const Slot<F::kStages>& at) {
    begin_products();
    multiply_rows<T, F::kKeys, F::kD>(s, shared.q[tile.stage][group], F::Queries::kPanelBytes,
                                      shared.k[at.stage]);
    end_of_products();
  }
  __device__ void mix_values(bool add) {
    shared.barriers.v_full[slot.stage].wait(slot.phase);
    begin_products();
    multiply_across<T, F::kD>(o, weights, shared.v[slot.stage], add);
    end_of_products();
  }

  __device__ void first_tile(int first_key, bool all_visible) {
    auto& b = shared.barriers;
    b.k_full[slot.stage].wait(slot.phase);
    take_turn();
    multiply_scores(slot);
    end_turn();
    wait_for_products<0>();
    hold(s);
    release(b.k_empty[slot.stage]);
    weigh<F>(s, rows, old, scale, first_key, all_visible);
    weights.set(s);
  }
  /// The scores of these keys, while the values of those before are mixed.
  __device__ void next_tile(int first_key, bool all_visible, bool add) {
    auto& b = shared.barriers;
    Slot<F::kStages> next = slot;
    next.advance();
    b.k_full[next.stage].wait(next.phase);
    take_turn();
    multiply_scores(next);
    mix_values(add);
    end_turn();
    wait_for_products<1>();
    hold(s);
    release(b.k_empty[next.stage]);
    weigh<F>(s, rows, old, scale, first_key, all_visible);
    wait_for_products<0>();
    hold(o);
    release(b.v_empty[slot.stage]);
#pragma unroll
    for (int e = 0; e < F::kD / 2; ++e) o[e] *= old[e / 2 % 2];
    weights.set(s);
    slot = next;
  }
  __device__ void last_values(bool add) {
    mix_values(add);
    wait_for_products<0>();
    hold(o);
    release(shared.barriers.v_empty[slot.stage]);
    slot.advance();
  }
};

template <class F>
__device__ void mix_tiles(typename F::Shared& shared, const ForwardMaps& maps, const ForwardWork& work,
                          int group) {
  Mixer<F> m{shared, group, work.sizes.scale * 1.4426950408889634f};
  if (group == F::kGroups - 1) m.end_turn();  // the first warpgroup may begin
  for (int n = 0, i; (i = work.order.of_block(n)) < work.order.count(); ++n) {
    const ForwardTile t = tile_of<F>(work, i);
    const int first = t.first + group * kGroupRows;
    const int unmasked = work.sizes.visible(first) / F::kKeys;  // tiles that all of these rows see whole
    m.begin(work, first);
    int j = t.key_tiles - 1;
    m.first_tile(j * F::kKeys, j < unmasked);
    while (--j >= 0) m.next_tile(j * F::kKeys, j < unmasked, j < t.key_tiles - 2);
    m.last_values(t.key_tiles > 1);
    float inverse[2];
    finish_rows<F>(work, t, m.rows, first + row_of_thread(), inverse);
    if (F::kParts > 1 && work.not_numbers) tell_not_numbers<F>(work, t, group, m.o);
    store_rows<F>(shared.q[m.tile.stage][group], maps.y, t, group, m.o, inverse);
    if (thread_of_group() == 0) shared.barriers.q_empty[m.tile.stage].arrive();
    m.tile.advance();
  }
  if (thread_of_group() == 0) wait_until_stored<0>();
}

template <class F>
__global__ void __launch_bounds__(F::kThreads, 1)
    attention_of_groups(const __grid_constant__ ForwardMaps maps, const ForwardWork work) {
  auto* bytes = dynamic_shared<char>();
  auto& shared = *reinterpret_cast<typename F::Shared*>(
      bytes + (kTileAlignment - shared_address(bytes) % kTileAlignment) % kTileAlignment);
  auto& b = shared.barriers;
  if (threadIdx.x == 0) {
    for (int i = 0; i < F::kTiles; ++i) b.q_full[i].init(1), b.q_empty[i].init(F::kGroups);
    for (int i = 0; i < F::kStages; ++i) {
      b.k_full[i].init(1), b.v_full[i].init(1);
      b.k_empty[i].init(4 * F::kGroups), b.v_empty[i].init(4 * F::kGroups);
    }
    show_barriers();
  }
  sync_block();
  wait_for_kernels_before();
  let_next_kernel_start();
  const int group = group_of_thread();
  if (group == F::kGroups) {
    give_registers<Registers<F::kGroups>::kCopy>();
    if (thread_of_group() == 0) copy_tiles<F>(shared, maps, work);
    return;
  }
  take_registers<Registers<F::kGroups>::kMultiply>();
  mix_tiles<F>(shared, maps, work, group);
}

// ---- what the host prepares

template <class F>
ForwardWork forward_work(const AttentionSizes& s, float* lse, int* not_numbers = nullptr) {
  const int tiles = (s.seq_q + F::kRows - 1) / F::kRows;
  return {s, lse, not_numbers,
          tile_order(tiles, s.heads * s.batch, int64_t{4} * s.seq_k * s.dim / s.shared_by)};
}

template <class F>
Outcome forward_maps(ForwardMaps& m, cudaStream_t stream, DType type, const void* q, const void* k,
                     const void* v, void* y, const AttentionSizes& s) {
  if (auto made = map_of(m.q, type, q, s, false, kGroupRows); !made.good()) return made;
  if (auto made = map_of(m.k, type, k, s, true, F::kKeys); !made.good()) return made;
  if (auto made = map_of(m.v, type, v, s, true, F::kKeys); !made.good()) return made;
  return map_of(m.y, stream, type, y, s, false);
}

}  // namespace weft::cuda::hopper
