#pragma once
#include "ragged.hpp"
#include "rotation.hpp"
#include "rows.hpp"

// Attention of single queries over caches, as decoding needs it: the keys of a query are split among blocks
// (Dao et al., Flash-Decoding, 2023), and the last one to end joins what they found. A block serves
// neighbouring heads that share their keys.
namespace weft::cuda::queries {

constexpr int kThreads = 128, kWarps = kThreads / 32, kPiece = 8, kUnroll = 4;
constexpr int kLeastKeys = 64;    // of a block
constexpr int kMostBlocks = 264;  // where keys are split
constexpr int kMostSplits = 64;   // of the keys of a query
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
  __device__ int share(int seen) const {
    const int even = (seen + splits - 1) / splits;
    return splits == 1 || even > kLeastKeys ? even : kLeastKeys;
  }
};

/// What a block found out about a head: the largest score, the sum of exp2(score - largest), and as many
/// elements of the values weighted by these.
struct Found {
  float largest = -INFINITY, sum = 0;

  /// The factors of two partial sums in their union.
  __device__ float join(float other, float& factor) {
    const float most = fmaxf(largest, other), base = most == -INFINITY ? 0 : most;
    factor = exp2f(other - base);
    const float own = exp2f(largest - base);
    largest = most;
    return own;
  }
};

/// kPiece elements of a row from `column` on, zeros behind its end.
template <class T>
struct RowPiece {
  Piece<T, kPiece> of;

  RowPiece() = default;
  __device__ RowPiece(const T* row, int column, int end, bool aligned) {
    if (aligned && column < end) {
      of = *reinterpret_cast<const Piece<T, kPiece>*>(row + column);
      return;
    }
    for (int i = 0; i < kPiece; ++i) of.of[i] = column + i < end ? row[column + i] : narrowed<T>(0);
  }
  __device__ float operator[](int i) const { return widened(of.of[i]); }
  /// To memory that is aligned to it.
  __device__ void write(T* to) const { *reinterpret_cast<Piece<T, kPiece>*>(to) = of; }
};

/// Keys and values that a lane needs at a time.
template <class T>
struct Pairs {
  RowPiece<T> keys[kUnroll], values[kUnroll];
};

/// What a token's attention does first: its queries and keys are normalized and rotated, its keys and values
/// written into the caches.
template <class T>
struct Fresh {
  typename Rotation<T>::Piece q, k, v;  ///< without x, there is nothing to do
};

/// kPiece elements of a row of x, from `column` on, as they are after the rotation. `squares`: the sum of
/// those of the row. `writes`: what others may read is written.
template <class T>
__device__ RowPiece<T> turned(const typename Rotation<T>::Piece& p, int row, int column, RowPiece<T> own,
                              float squares, bool writes) {
  const int width = 2 * p.half, pair_column = p.interleaved     ? column
                                              : column < p.half ? column + p.half
                                                                : column - p.half;
  RowPiece<T> pair = own;
  if (p.cosine && !p.interleaved) pair = RowPiece<T>(p.x + p.place(row, 0), pair_column, width, true);
  if (p.normed) {
    const float scale = p.scale_of(squares);
    for (int e = 0; e < kPiece; ++e) {
      own.of.of[e] = p.normalized(own.of.of[e], column + e, scale);
      pair.of.of[e] = p.normalized(pair.of.of[e], pair_column + e, scale);
    }
    if (writes) own.write(p.normed + p.place(row, column));
  }
  if (p.cosine) {
    const int64_t table = int64_t{p.tables.row_of(row)} * p.half;
    const RowPiece<T> before = own;
#pragma unroll
    for (int e = 0; e < kPiece; ++e) {
      const int64_t at = table + (p.interleaved ? column / 2 + e / 2 : column % p.half + e);
      const bool is_first = p.interleaved ? e % 2 == 0 : column < p.half;
      const float a = before[e], b = p.interleaved ? before[e ^ 1] : pair[e], cosine = widened(p.cosine[at]),
                  sine = widened(p.sine[at]);
      own.of.of[e] = narrowed<T>(is_first ? a * cosine - b * sine : b * sine + a * cosine);
    }
  }
  if (writes && p.y) own.write(p.y + p.place(row, column));
  return own;
}

/// Which queries a block serves, and which of their keys.
struct Share {
  int token, kv, head, heads, split, parts, sequence, position, first, end;

  __device__ Share(const Sizes& s, int most_heads, Ragged::Place place) {
    split = static_cast<int>(blockIdx.x), token = static_cast<int>(blockIdx.z);
    kv = static_cast<int>(blockIdx.y) / s.groups;
    const int first_head = static_cast<int>(blockIdx.y) % s.groups * most_heads;
    head = kv * s.shared_by + first_head;
    heads = s.shared_by - first_head < most_heads ? s.shared_by - first_head : most_heads;
    const int seen = s.seen(place), share = s.share(seen);
    sequence = place.sequence, position = place.position, first = split * share,
    end = first + share < seen ? first + share : seen;
    parts = seen == 0 ? 1 : (seen + share - 1) / share;
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

/// Where blocks leave what they found: `dim` sums, the largest score and the sum of weights, for each head of
/// each block.
__device__ inline float* place_of_found(float* all, const Sizes& s, int64_t token, int head, int split) {
  return all + ((token * s.heads + head) * s.splits + split) * (s.dim + 2);
}

/// The average of what some parts found, of whom `largest` and `sum` are in shared memory, as numerator;
/// `all` has the rest.
template <class LoadSum, class LoadLargest, class LoadColumn>
__device__ float joined(int parts, Found& all, LoadSum sum, LoadLargest largest, LoadColumn column) {
  for (int i = 0; i < parts; ++i) all.largest = fmaxf(all.largest, largest(i));
  const float base = all.largest == -INFINITY ? 0 : all.largest;
  float average = 0;
#pragma unroll 16  // so many loads of `column` are under way at once
  for (int i = 0; i < parts; ++i) {
    const float factor = exp2f(largest(i) - base);
    all.sum += sum(i) * factor;
    average += column(i) * factor;
  }
  return average;
}

/// The queries of a block, then the new key and its value, into shared memory.
template <class T, int kLanes, int kHeads>
__device__ void turn_rows(const T* q, const Fresh<T>& fresh, const Sizes& s, const Share& share,
                          RowPiece<T> (*rows)[kLanes]) {
  const int slot = static_cast<int>(threadIdx.x) / kLanes,
            column = static_cast<int>(threadIdx.x) % kLanes * kPiece;
  const bool leads = share.head == share.kv * s.shared_by;
  for (int begin = 0; begin < kHeads + 2; begin += kThreads / kLanes) {  // all lanes of a warp
    const int row = begin + slot;
    const auto& piece = row < kHeads ? fresh.q : row == kHeads ? fresh.k : fresh.v;
    const int head = row >= kHeads ? share.kv : share.head + (row < share.heads ? row : 0);
    const T* const from = piece.x ? piece.x : q + int64_t{share.token} * s.heads * s.dim;
    RowPiece<T> of_row(from + int64_t{head} * s.dim, column, s.dim, s.aligned);
    float squares = 0;
    for (int e = 0; e < kPiece; ++e) squares += of_row[e] * of_row[e];
    squares = sum_of<kLanes>(squares);
    if (piece.x && column < s.dim)
      of_row = turned<T>(piece, head, column, of_row, squares,
                         share.split == 0 && (row < kHeads ? row < share.heads : leads));
    if (row < kHeads + 2) rows[row][column / kPiece] = of_row;
  }
}

/// Has the keys and values of a share come near, while kernels before still run. What they write may be
/// missing: nothing is read here.
template <class T>
__device__ void prefetch_share(const T* keys, const T* values, const Sizes& s, const Share& share) {
  constexpr int kLine = 128 / sizeof(T);
  const int begin = share.first * s.dim, end = share.end * s.dim;
  for (int i = begin + static_cast<int>(threadIdx.x) * kLine; i < end; i += kThreads * kLine)
    prefetch(keys + i), prefetch(values + i);
}

template <class T, int kLanes, int kHeads>
__global__ void __launch_bounds__(kThreads)
    search_keys(const T* q, const T* keys, const T* values, T* y, float* partial, int* counters,
                const __grid_constant__ Sizes s, const __grid_constant__ Fresh<T> fresh) {
  __shared__ float of_warps[kWarps][kHeads][kLanes * kPiece], largest[kWarps][kHeads], sums[kWarps][kHeads];
  __shared__ float split_largest[kHeads][kMostSplits], split_sums[kHeads][kMostSplits];
  __shared__ int ended_before;
  __shared__ RowPiece<T> rows[kHeads + 2][kLanes];  // queries, the new key and its value
  using Search = Searching<T, kLanes, kHeads>;
  let_next_kernel_start();
  const int token = static_cast<int>(blockIdx.z);
  const auto cache_of = [&](const Share& share) {
    return (int64_t{share.sequence} * s.kv_heads + share.kv) * s.ragged.capacity * s.dim;
  };
  // A guess of what `length` and `offsets` are going to be: most often they are that already.
  const Share likely(s, kHeads, s.ragged.likely_place_of(token));
  if (likely.first < likely.end)
    prefetch_share(keys + cache_of(likely), values + cache_of(likely), s, likely);
  wait_for_kernels_before();
  Search search{s};
  Pairs<T> pairs;
  if (likely.first < likely.end)
    pairs = search.load(keys + cache_of(likely), values + cache_of(likely), likely.first, likely.end);
  const Share share(s, kHeads, s.ragged.place_of(token));
  if (share.split >= share.parts) return;  // with the whole block
  // The key that is written here: number -1 if there is none.
  const bool in_cache = share.sequence >= 0 && share.position >= 0 && share.position < s.ragged.capacity;
  const int newest = fresh.k.x && in_cache ? share.position : -1;
  turn_rows<T, kLanes, kHeads>(q, fresh, s, share, rows);
  sync_block();
  search.load_queries(rows);
  const int64_t cache = cache_of(share);
  const bool owns = newest >= share.first && newest < share.end && share.head == share.kv * s.shared_by;
  if (const int c = static_cast<int>(threadIdx.x) * kPiece; owns && c < s.dim) {
    const int64_t at = cache + int64_t{newest} * s.dim + c;
    rows[kHeads][threadIdx.x].write(fresh.k.cache + at);
    rows[kHeads + 1][threadIdx.x].write(fresh.v.cache + at);
  }
  for (int at = share.first; at < share.end; at += Search::kStep * kUnroll) {
    if (at > share.first || share.first != likely.first || share.end != likely.end ||
        share.sequence != likely.sequence)
      pairs = search.load(keys + cache, values + cache, at, share.end);
    search.see(pairs, at, share.end, newest, rows[kHeads][search.column / kPiece],
               rows[kHeads + 1][search.column / kPiece]);
  }
  search.join_slots();
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    if (lane < kLanes)
      for (int e = 0; e < kPiece; ++e) of_warps[warp][h][search.column + e] = search.sums[h][e];
    if (lane == 0) largest[warp][h] = search.found[h].largest, sums[warp][h] = search.found[h].sum;
  }
  sync_block();
  T* const to_rows = y + (int64_t{share.token} * s.heads + share.head) * s.dim;
  const auto average = [](float sum, const Found& all) {
    return narrowed<T>(all.sum > 0 ? sum / all.sum : 0);
  };
  for (int i = static_cast<int>(threadIdx.x); i < share.heads * s.dim; i += kThreads) {
    const int h = i / s.dim, column = i % s.dim;
    Found all;
    const float sum = joined(
        kWarps, all, [&](int w) { return sums[w][h]; }, [&](int w) { return largest[w][h]; },
        [&](int w) { return of_warps[w][h][column]; });
    if (share.parts == 1) {
      to_rows[i] = average(sum, all);
      continue;
    }
    float* const to = place_of_found(partial, s, share.token, share.head + h, share.split);
    to[column] = sum;
    if (column == 0) to[s.dim] = all.largest, to[s.dim + 1] = all.sum;
  }
  if (share.parts == 1) return;
  fence_device();
  sync_block();
  int* const counter = counters + int64_t{share.token} * gridDim.y + blockIdx.y;
  if (threadIdx.x == 0) ended_before = atomicAdd(counter, 1);
  sync_block();
  if (ended_before != share.parts - 1) return;
  if (threadIdx.x == 0) *counter = 0;
  fence_device();
  const auto found_by = [&](int head, int split) {
    return place_of_found(partial, s, share.token, share.head + head, split);
  };
  for (int i = static_cast<int>(threadIdx.x); i < share.heads * share.parts; i += kThreads) {
    const int h = i / share.parts, split = i % share.parts;
    split_largest[h][split] = load_shared_by_blocks(found_by(h, split) + s.dim);
    split_sums[h][split] = load_shared_by_blocks(found_by(h, split) + s.dim + 1);
  }
  sync_block();
  for (int i = static_cast<int>(threadIdx.x); i < share.heads * s.dim; i += kThreads) {
    const int h = i / s.dim;
    const float* const column = found_by(h, 0) + i % s.dim;
    Found all;
    const float sum = joined(
        share.parts, all, [&](int split) { return split_sums[h][split]; },
        [&](int split) { return split_largest[h][split]; },
        [&](int split) { return load_shared_by_blocks(column + split * (s.dim + 2)); });
    to_rows[i] = average(sum, all);
  }
}

}  // namespace weft::cuda::queries
