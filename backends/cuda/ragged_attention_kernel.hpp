#pragma once
#include "ragged_attention_fresh.hpp"
#include "ragged_attention_join.hpp"

// Attention of single queries over caches, as decoding needs it: the keys of a query are split among blocks
// (Dao et al., Flash-Decoding, 2023). Those of a cluster join what they found in their shared memory; where
// there are more clusters of a query, the last block to end joins what these have left in global memory. A
// block serves neighbouring heads that share their keys.
namespace weft::cuda::queries {

constexpr int kThreads = 256, kWarps = kThreads / 32, kUnroll = 4;
constexpr int kLeastKeys = 64;      // of a block
constexpr int kClusterKeys = 1024;  // so many have one cluster, if there are clusters
constexpr int kMostBlocks = 256;    // where keys are split: all run at a time
constexpr int kMostSplits = 64;     // of the keys of a query
static_assert(kMostBlocks <= kCounters);

struct Sizes {
  int heads, kv_heads, shared_by, dim, groups, splits;
  float scale;  // of scores, whose exponentials have base 2
  bool aligned;
  Ragged ragged;

  /// The keys that a token sees.
  __device__ int seen(Ragged::Place at) const {
    if (at.sequence < 0 || at.position < 0) return 0;
    return at.position < ragged.capacity ? at.position + 1 : ragged.capacity;
  }
  /// The keys of a block.
  template <int kCluster>
  __device__ int share(int seen) const {
    const int blocks = kCluster > 1 && seen <= kClusterKeys ? kCluster : splits,
              even = (seen + blocks - 1) / blocks;
    return blocks == 1 || even > kLeastKeys ? even : kLeastKeys;
  }
};

/// Keys and values that a lane needs at a time.
template <class T>
struct Pairs {
  RowPiece<T> keys[kUnroll], values[kUnroll];
};

/// Which queries a block serves.
struct Heads {
  int token, kv, first, n;

  __device__ Heads(const Sizes& s, int most, int of_token, int group)
      : token(of_token), kv(group / s.groups) {
    const int first_of_group = group % s.groups * most;
    first = kv * s.shared_by + first_of_group;
    n = s.shared_by - first_of_group < most ? s.shared_by - first_of_group : most;
  }
  __device__ bool leads(const Sizes& s) const { return first == kv * s.shared_by; }
};

/// Which of their keys: those of a number of parts that hold any.
struct Share {
  int sequence, position, split, parts, first, end;

  template <int kCluster>
  __device__ static Share of(const Sizes& s, Ragged::Place place, int split) {
    const int seen = s.seen(place), each = s.share<kCluster>(seen), first = split * each;
    return {place.sequence, place.position,
            split,          seen == 0 ? 1 : (seen + each - 1) / each,
            first,          first + each < seen ? first + each : seen};
  }
  __device__ bool operator==(const Share& other) const {
    return sequence == other.sequence && first == other.first && end == other.end;
  }
};

/// kLanes lanes have a key's row; a warp takes 32 / kLanes keys at a time.
template <class T, int kLanes, int kHeads>
struct Searching {
  static constexpr int kSlots = 32 / kLanes, kStep = kWarps * kSlots;

  const Sizes& s;
  int column = static_cast<int>(threadIdx.x) % kLanes * kPiece;
  float q[kHeads][kPiece], sums[kHeads][kPiece] = {};
  Found found[kHeads];

  __device__ explicit Searching(const Sizes& sizes) : s(sizes) {}

  __device__ void load_queries(const RowPiece<T> (*rows)[kLanes]) {
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      const RowPiece<T> row = rows[h][column / kPiece];
#pragma unroll
      for (int e = 0; e < kPiece; ++e) q[h][e] = row[e] * s.scale;
    }
  }
  /// From key `at` on, those of this lane.
  __device__ Pairs<T> load(const T* keys, const T* values, int at, int end) const {
    Pairs<T> all;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int key = at + u * kStep + static_cast<int>(threadIdx.x) / kLanes, of_row = key < end ? s.dim : 0;
      all.keys[u] = RowPiece<T>(keys + int64_t{key} * s.dim, column, of_row, s.aligned);
      all.values[u] = RowPiece<T>(values + int64_t{key} * s.dim, column, of_row, s.aligned);
    }
    return all;
  }
  /// `pairs` are those from `at` on. Key number `fresh` is not in the caches yet.
  __device__ void see(Pairs<T>& pairs, int at, int end, int fresh, const RowPiece<T>& key,
                      const RowPiece<T>& value) {
    const int slot = static_cast<int>(threadIdx.x) / kLanes;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (at + u * kStep + slot == fresh) pairs.keys[u] = key, pairs.values[u] = value;
#pragma unroll
    for (int h = 0; h < kHeads; ++h) add(h, pairs.keys, pairs.values, at + slot, end);
  }
  __device__ void add(int h, const RowPiece<T> (&k)[kUnroll], const RowPiece<T> (&v)[kUnroll], int key,
                      int end) {
    float score[kUnroll], most = -INFINITY;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      float dot = 0;
#pragma unroll
      for (int e = 0; e < kPiece; ++e) dot += q[h][e] * k[u][e];
      dot = sum_of<kLanes>(dot);
      score[u] = key + u * kStep < end ? dot : -INFINITY;
      most = fmaxf(most, score[u]);
    }
    float factor;
    const float own = found[h].join(most, factor),
                base = found[h].largest == -INFINITY ? 0 : found[h].largest;
    found[h].sum *= own;
#pragma unroll
    for (int e = 0; e < kPiece; ++e) sums[h][e] *= own;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const float weight = exp2f(score[u] - base);
      found[h].sum += weight;
#pragma unroll
      for (int e = 0; e < kPiece; ++e) sums[h][e] += weight * v[u][e];
    }
  }
  /// Joins what the slots of this warp found.
  __device__ void join_slots() {
#pragma unroll
    for (int apart = kLanes; apart < 32; apart *= 2)
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        float factor;
        const float other_sum = shuffle_xor(found[h].sum, apart),
                    own = found[h].join(shuffle_xor(found[h].largest, apart), factor);
        found[h].sum = found[h].sum * own + other_sum * factor;
#pragma unroll
        for (int e = 0; e < kPiece; ++e)
          sums[h][e] = sums[h][e] * own + shuffle_xor(sums[h][e], apart) * factor;
      }
  }
};

/// Has the keys and values of a share come near, while kernels before still run. What they write may be
/// missing: nothing is read here.
template <class T>
__device__ void prefetch_share(const T* keys, const T* values, const Sizes& s, const Share& share) {
  constexpr int kLine = 128 / sizeof(T);
  const int begin = share.first * s.dim, end = share.end * s.dim;
  for (int i = begin + static_cast<int>(threadIdx.x) * kLine; i < end; i += kThreads * kLine)
    prefetch(keys + i), prefetch(values + i);
}

/// Where clusters leave what they found: `dim` sums, the largest score and the sum of weights, for each head
/// of each cluster.
__device__ inline float* place_of_found(float* all, const Sizes& s, int64_t token, int head, int cluster) {
  return all + ((token * s.heads + head) * s.splits + cluster) * (s.dim + 2);
}
template <class T>
__device__ T average(float sum, const Found& all) {
  return narrowed<T>(all.sum > 0 ? sum / all.sum : 0);
}

/// Joins what the warps of this block found.
template <int kLanes, int kHeads, class Search>
__device__ void join_warps(const Search& search, BlockFound<kHeads, kLanes * kPiece>& to) {
  __shared__ BlockFound<kHeads, kLanes * kPiece> of[kWarps];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    if (lane < kLanes)
      for (int e = 0; e < kPiece; ++e) of[warp].columns[h][search.column + e] = search.sums[h][e];
    if (lane == 0) of[warp].largest[h] = search.found[h].largest, of[warp].sums[h] = search.found[h].sum;
  }
  sync_block();
  for (int i = static_cast<int>(threadIdx.x); i < kHeads * kLanes * kPiece; i += kThreads) {
    const int h = i / (kLanes * kPiece), column = i % (kLanes * kPiece);
    Found all;
    to.columns[h][column] = joined<kWarps>(
        kWarps, all, [&](int w) { return of[w].largest[h]; }, [&](int w) { return of[w].sums[h]; },
        [&](int w) { return of[w].columns[h][column]; });
    if (column == 0) to.largest[h] = all.largest, to.sums[h] = all.sum;
  }
}

/// Joins what the blocks of this cluster found: each of them a part of the elements. They are the result if
/// there is one cluster.
template <class T, int kCluster, int kHeads, int kDim>
__device__ void join_cluster(const BlockFound<kHeads, kDim>& own, const Sizes& s, const Heads& heads,
                             const Share& share, T* y, float* partial) {
  const int rank = share.split % kCluster, cluster = share.split / kCluster,
            rest = share.parts - cluster * kCluster, members = rest < kCluster ? rest : kCluster;
  const BlockFound<kHeads, kDim>* of[kCluster];
#pragma unroll
  for (int m = 0; m < kCluster; ++m)
    of[m] = kCluster == 1 ? &own : in_block_of_cluster(&own, m < members ? m : rank);
  for (int i = rank * kThreads + static_cast<int>(threadIdx.x); i < heads.n * s.dim;
       i += members * kThreads) {
    const int h = i / s.dim, column = i % s.dim;
    float largest[kCluster], sums[kCluster], columns[kCluster];
#pragma unroll
    for (int m = 0; m < kCluster; ++m) {
      const bool there = m < members;
      largest[m] = there ? of[m]->largest[h] : -INFINITY;
      sums[m] = there ? of[m]->sums[h] : 0, columns[m] = there ? of[m]->columns[h][column] : 0;
    }
    Found all;
    const float sum = joined<kCluster>(
        kCluster, all, [&](int m) { return largest[m]; }, [&](int m) { return sums[m]; },
        [&](int m) { return columns[m]; });
    if (share.parts <= kCluster) {
      y[i] = average<T>(sum, all);
      continue;
    }
    float* const to = place_of_found(partial, s, heads.token, heads.first + h, cluster);
    to[column] = sum;
    if (column == 0) to[s.dim] = all.largest, to[s.dim + 1] = all.sum;
  }
}

/// The last block to come here joins what the clusters found.
template <class T, int kHeads>
__device__ void join_clusters(const Sizes& s, const Heads& heads, int blocks, int clusters, T* y,
                              float* partial, int* counters) {
  __shared__ float largest[kHeads][kMostSplits], sums[kHeads][kMostSplits];
  __shared__ int ended_before;
  fence_device();
  sync_block();
  int* const counter = counters + int64_t{heads.token} * gridDim.y + blockIdx.y;
  if (threadIdx.x == 0) ended_before = atomicAdd(counter, 1);
  sync_block();
  if (ended_before != blocks - 1) return;
  if (threadIdx.x == 0) *counter = 0;
  fence_device();
  const auto found_by = [&](int head, int cluster) {
    return place_of_found(partial, s, heads.token, heads.first + head, cluster);
  };
  for (int i = static_cast<int>(threadIdx.x); i < heads.n * clusters; i += kThreads) {
    const int h = i / clusters, cluster = i % clusters;
    largest[h][cluster] = load_shared_by_blocks(found_by(h, cluster) + s.dim);
    sums[h][cluster] = load_shared_by_blocks(found_by(h, cluster) + s.dim + 1);
  }
  sync_block();
  for (int i = static_cast<int>(threadIdx.x); i < heads.n * s.dim; i += kThreads) {
    const int h = i / s.dim;
    const float* const column = found_by(h, 0) + i % s.dim;
    Found all;
    const float sum = joined<16>(
        clusters, all, [&](int c) { return largest[h][c]; }, [&](int c) { return sums[h][c]; },
        [&](int c) { return load_shared_by_blocks(column + c * (s.dim + 2)); });
    y[i] = average<T>(sum, all);
  }
}

template <class T, int kLanes, int kHeads, int kCluster>
__global__ void __launch_bounds__(kThreads, 2)
    search_keys(const T* q, const T* keys, const T* values, T* y, float* partial, int* counters,
                const __grid_constant__ Sizes s, const __grid_constant__ Fresh<T> fresh) {
  static_assert(kThreads / kLanes >= kHeads + 2);
  __shared__ BlockFound<kHeads, kLanes * kPiece> own;
  __shared__ RowPiece<T> rows[kHeads + 2][kLanes];  // queries, the new key and its value
  using Search = Searching<T, kLanes, kHeads>;
  const Heads heads(s, kHeads, static_cast<int>(blockIdx.z), static_cast<int>(blockIdx.y));
  const int split = static_cast<int>(blockIdx.x);
  const auto cache_of = [&](const Share& share) {
    return (int64_t{share.sequence} * s.kv_heads + heads.kv) * s.ragged.capacity * s.dim;
  };
  // A guess of what `length` and `offsets` are going to be: most often they are that already.
  const Share likely = Share::of<kCluster>(s, s.ragged.likely_place_of(heads.token), split);
  if (likely.first < likely.end)
    prefetch_share(keys + cache_of(likely), values + cache_of(likely), s, likely);
  wait_for_kernels_before();
  const Ragged::Place place = s.ragged.place_of(heads.token);
  const int row = static_cast<int>(threadIdx.x) / kLanes,
            column = static_cast<int>(threadIdx.x) % kLanes * kPiece;
  TurningRow<T, kHeads> turning(fresh, q + int64_t{heads.token} * s.heads * s.dim, row, heads.first, heads.n,
                                heads.kv, column, s.dim, s.aligned);
  Search search(s);
  Pairs<T> pairs;
  if (likely.first < likely.end)
    pairs = search.load(keys + cache_of(likely), values + cache_of(likely), likely.first, likely.end);
  let_next_kernel_start();  // whose weights would come before these keys
  const RowPiece<T> turned =
      turning.template finish<kLanes>(fresh, split == 0 && (row < kHeads ? row < heads.n : heads.leads(s)));
  if (row < kHeads + 2) rows[row][column / kPiece] = turned;
  const Share share = Share::of<kCluster>(s, place, split);
  if (share.split >= share.parts) return;  // with the whole block
  sync_block();
  search.load_queries(rows);
  // The key that is written here: number -1 if there is none.
  const bool in_cache = share.sequence >= 0 && share.position >= 0 && share.position < s.ragged.capacity;
  const int newest = fresh.k.x && in_cache ? share.position : -1;
  const int64_t cache = cache_of(share);
  const bool owns = newest >= share.first && newest < share.end && heads.leads(s);
  if (const int c = static_cast<int>(threadIdx.x) * kPiece; owns && c < s.dim) {
    const int64_t at = cache + int64_t{newest} * s.dim + c;
    rows[kHeads][threadIdx.x].write(fresh.k.cache + at);
    rows[kHeads + 1][threadIdx.x].write(fresh.v.cache + at);
  }
  for (int at = share.first; at < share.end; at += Search::kStep * kUnroll) {
    if (at > share.first || !(share == likely))
      pairs = search.load(keys + cache, values + cache, at, share.end);
    search.see(pairs, at, share.end, newest, rows[kHeads][search.column / kPiece],
               rows[kHeads + 1][search.column / kPiece]);
  }
  search.join_slots();
  join_warps<kLanes, kHeads>(search, own);
  sync_cluster<kCluster>();
  T* const to = y + (int64_t{heads.token} * s.heads + heads.first) * s.dim;
  join_cluster<T, kCluster>(own, s, heads, share, to, partial);
  if (share.parts > kCluster)
    join_clusters<T, kHeads>(s, heads, share.parts, (share.parts + kCluster - 1) / kCluster, to, partial,
                             counters);
  sync_cluster<kCluster>();  // others may read this block's memory until here
}

}  // namespace weft::cuda::queries
