#include "../collected.hpp"
#include "../ragged.hpp"
#include "../rows.hpp"

// Attention of single queries over caches, as decoding needs it: the keys of a query are split among blocks
// (Dao et al., Flash-Decoding, 2023), and the last one to end joins what they found. A block serves
// neighbouring heads that share their keys.
namespace weft::cuda {

using namespace backend;

namespace {

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
};

/// kLanes lanes have a key's row; a warp takes 32 / kLanes keys at a time.
template <class T, int kLanes, int kHeads>
struct Searching {
  static constexpr int kSlots = 32 / kLanes, kStep = kWarps * kSlots;

  const Sizes& s;
  int column = static_cast<int>(threadIdx.x) % kLanes * kPiece;
  float q[kHeads][kPiece], sums[kHeads][kPiece] = {};
  Found found[kHeads];

  __device__ void load_queries(const T* rows, int n) {
    for (int h = 0; h < kHeads; ++h) {
      const RowPiece<T> row(rows + int64_t{h < n ? h : 0} * s.dim, column, s.dim, s.aligned);
      for (int e = 0; e < kPiece; ++e) q[h][e] = row[e] * s.scale;
    }
  }
  __device__ void see(const T* keys, const T* values, int first, int end) {
    const int slot = static_cast<int>(threadIdx.x) / kLanes;
    for (int at = first; at < end; at += kStep * kUnroll) {
      RowPiece<T> k[kUnroll], v[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int key = at + u * kStep + slot, of_row = key < end ? s.dim : 0;
        k[u] = RowPiece<T>(keys + int64_t{key} * s.dim, column, of_row, s.aligned);
        v[u] = RowPiece<T>(values + int64_t{key} * s.dim, column, of_row, s.aligned);
      }
#pragma unroll
      for (int h = 0; h < kHeads; ++h) add(h, k, v, at + slot, end);
    }
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

/// Which queries a block serves, and which of their keys.
struct Share {
  int token, kv, head, heads, split, parts, sequence, first, end;

  __device__ Share(const Sizes& s, int most_heads) {
    split = static_cast<int>(blockIdx.x), token = static_cast<int>(blockIdx.z);
    kv = static_cast<int>(blockIdx.y) / s.groups;
    const int first_head = static_cast<int>(blockIdx.y) % s.groups * most_heads;
    head = kv * s.shared_by + first_head;
    heads = s.shared_by - first_head < most_heads ? s.shared_by - first_head : most_heads;
    const auto place = s.ragged.place_of(token);
    const int seen = s.seen(place), share = s.share(seen);
    sequence = place.sequence, first = split * share, end = first + share < seen ? first + share : seen;
    parts = seen == 0 ? 1 : (seen + share - 1) / share;
  }
};

template <class T, int kLanes, int kHeads>
__global__ void __launch_bounds__(kThreads)
    search_keys(const T* q, const T* keys, const T* values, T* y, float* partial, int* counters, Sizes s) {
  __shared__ float of_warps[kWarps][kHeads][kLanes * kPiece], largest[kWarps][kHeads], sums[kWarps][kHeads];
  __shared__ float split_largest[kHeads][kMostSplits], split_sums[kHeads][kMostSplits];
  __shared__ int ended_before;
  wait_for_kernels_before();
  let_next_kernel_start();
  const Share share(s, kHeads);
  if (share.split >= share.parts) return;  // with the whole block
  Searching<T, kLanes, kHeads> search{s};
  search.load_queries(q + (int64_t{share.token} * s.heads + share.head) * s.dim, share.heads);
  const int64_t cache = (int64_t{share.sequence} * s.kv_heads + share.kv) * s.ragged.capacity * s.dim;
  if (share.first < share.end) search.see(keys + cache, values + cache, share.first, share.end);
  search.join_slots();
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    if (lane < kLanes)
      for (int e = 0; e < kPiece; ++e) of_warps[warp][h][search.column + e] = search.sums[h][e];
    if (lane == 0) largest[warp][h] = search.found[h].largest, sums[warp][h] = search.found[h].sum;
  }
  sync_block();
  T* const rows = y + (int64_t{share.token} * s.heads + share.head) * s.dim;
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
      rows[i] = average(sum, all);
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
    rows[i] = average(sum, all);
  }
}

Support accepts(const OpCall& c) {
  const TypeView q = c.input(0), k = c.input(1), v = c.input(2);
  if (auto s = takes_rows(q); !s) return s;
  if (q.rank() != 3 || k.rank() != 4 || v.rank() != 4) return Support::no("wants tokens and caches of heads");
  if (auto s = takes_ragged(k, q.max()[0], c.input(3), c.input(4)); !s) return s;
  const int64_t dim = q.max()[2], heads = q.max()[1], kv_heads = k.max()[1];
  if (!std::ranges::equal(k.max(), v.max())) return Support::no("keys and values must have one shape");
  if (dim < 1 || dim > 256) return Support::no("heads of 1 to 256 numbers, got {}", dim);
  if (kv_heads < 1 || heads >= 65536) return Support::no("{} heads, {} of keys", heads, kv_heads);
  if (q.max()[0] >= 65536) return Support::no("at most 65,535 tokens, got {}", q.max()[0]);
  return Support::yes();
}

// Keys are split only as far as there are kMostBlocks blocks, each of which leaves at most four heads.
Outcome prepare(const OpCall& c, weft_plan& plan) {
  const auto dim = static_cast<uint64_t>(c.input(0).max()[2]);
  plan.workspace = kMostBlocks * 4 * (dim + 2) * sizeof(float);
  return Outcome::ok();
}

template <class T, int kLanes, int kHeads>
Outcome search(const Launch& l, Sizes s) {
  const TensorView q = l.input(0), y = l.output(0);
  s.groups = (s.shared_by + kHeads - 1) / kHeads;
  const int64_t blocks = q.dim(0) * s.kv_heads * s.groups,
                useful = std::max<int64_t>((s.ragged.capacity + kLeastKeys - 1) / kLeastKeys, 1);
  s.splits =
      static_cast<int>(std::clamp<int64_t>(kMostBlocks / blocks, 1, std::min<int64_t>(useful, kMostSplits)));
  const auto tokens = static_cast<unsigned>(q.dim(0));
  auto* const partial = l.workspace().data<float>();
  const Grid grid{static_cast<unsigned>(s.splits), static_cast<unsigned>(s.kv_heads * s.groups), tokens};
  return start(l, grid, kThreads, 0, search_keys<T, kLanes, kHeads>, q.data<const T>(),
               l.input(1).data<const T>(), l.input(2).data<const T>(), y.data<T>(), partial,
               queue_of(l).counters(), s);
}

Outcome launch(const Launch& l) {
  const TensorView q = l.input(0), k = l.input(1), v = l.input(2);
  if (q.size() == 0) return Outcome::ok();
  const double scale = l.call().attr("scale").real();
  Sizes s{};
  s.heads = static_cast<int>(q.dim(1)), s.kv_heads = static_cast<int>(k.dim(1)),
  s.dim = static_cast<int>(q.dim(2));
  s.shared_by = s.heads / s.kv_heads;
  s.scale = static_cast<float>((scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(s.dim))) *
                               1.4426950408889634);
  s.aligned = s.dim % kPiece == 0 && aligned_rows(s.dim, {q, k, v});
  s.ragged = ragged_of(l.input(3), l.input(4), q.dim(0), k);
  return with_type(q.dtype(), [&]<class T>(T*) {
    const auto with_lanes = [&]<int kLanes>() {
      return s.shared_by == 1 ? search<T, kLanes, 1>(l, s) : search<T, kLanes, 4>(l, s);
    };
    if (s.dim <= 64) return with_lanes.template operator()<8>();
    if (s.dim <= 128) return with_lanes.template operator()<16>();
    return with_lanes.template operator()<32>();
  });
}

}  // namespace

std::span<const KernelRecord> ragged_attention_split() {
  static const KernelRecord all[] = {{.op = "ragged_attention",
                                      .variant = "split",
                                      .reads = {"scale"},
                                      .accepts = accepts,
                                      .prepare = prepare,
                                      .launch = launch}};
  return all;
}

}  // namespace weft::cuda
