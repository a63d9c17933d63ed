#pragma once
#include "weights.hpp"

// Attention of a step of a chain: one token, whose keys are split among blocks, which join what they found by
// exchange memory.
namespace weft::cuda::chains {

constexpr int kComputing = 32 * kChainWarps;  // threads
constexpr int kSyncComputing = 1;             // the barrier of these

__device__ inline void sync_computing() { sync_threads(kSyncComputing, kComputing); }

/// Shared memory of a step of attention.
template <int kLanes, int kHeads>
struct QueryMemory {
  static constexpr int kDim = kLanes * queries::kPiece;
  queries::BlockFound<kHeads, kDim> of_warps[kChainWarps];
  alignas(16) bf16 turned[kHeads + 2][kDim];
};

/// 8 elements.
struct Elements {
  float of[8];
  Elements() = default;
  __device__ explicit Elements(const Words& b) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      of[2 * i] = as_float(b.of[i] << 16), of[2 * i + 1] = as_float(b.of[i] & 0xffff0000u);
  }
};

/// What a lane finds: kLanes lanes have a key's row, a warp takes 32 / kLanes keys at a time, and kAtOnce
/// such steps are under way.
template <int kLanes, int kHeads>
struct Finding {
  static constexpr int kSlots = 32 / kLanes, kStep = kChainWarps * kSlots, kAtOnce = 2,
                       kKeys = kStep * kAtOnce;
  static_assert(kKeys * kLanes * 16 == kKeysBytes);

  int slot = static_cast<int>(threadIdx.x) / kLanes, piece = static_cast<int>(threadIdx.x) % kLanes;
  Words keys[kAtOnce], values[kAtOnce];
  Elements q[kHeads];
  float sums[kHeads][8] = {};
  queries::Found found[kHeads];

  /// `n` keys and values of a chunk; zeros behind them.
  __device__ void load(const char* chunk, int n) {
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int key = u * kStep + slot;
      keys[u] = values[u] = Words{};
      if (key >= n) continue;
      const auto* const from = reinterpret_cast<const Words*>(chunk) + key * kLanes + piece;
      keys[u] = *from, values[u] = from[kKeysBytes / 16];
    }
  }
  __device__ void see(int n, float scale) {
    float scores[kHeads][kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const Elements k(keys[u]);
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        float dot = 0;
#pragma unroll
        for (int e = 0; e < 8; ++e) dot += q[h].of[e] * k.of[e];
        dot = sum_of<kLanes>(dot);
        scores[h][u] = u * kStep + slot < n ? dot * scale : -INFINITY;
      }
    }
#pragma unroll
    for (int h = 0; h < kHeads; ++h) weigh(h, scores[h]);
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const Elements v(values[u]);
#pragma unroll
      for (int h = 0; h < kHeads; ++h)
#pragma unroll
        for (int e = 0; e < 8; ++e) sums[h][e] += scores[h][u] * v.of[e];
    }
  }
  /// Joins what the slots of this warp found, whose weights have one base.
  __device__ void join_slots() {
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      found[h].sum = sum_of_slots(found[h].sum);
#pragma unroll
      for (float& s : sums[h]) s = sum_of_slots(s);
    }
  }

 private:
  __device__ static float sum_of_slots(float x) {
#pragma unroll
    for (int apart = kLanes; apart < 32; apart *= 2) x += shuffle_xor(x, apart);
    return x;
  }
  /// Scores become weights.
  __device__ void weigh(int h, float (&scores)[kAtOnce]) {
    float most = -INFINITY;
#pragma unroll
    for (const float s : scores) most = fmaxf(most, s);
#pragma unroll
    for (int apart = kLanes; apart < 32; apart *= 2) most = fmaxf(most, shuffle_xor(most, apart));
    float factor;
    const float own = found[h].join(most, factor),
                base = found[h].largest == -INFINITY ? 0 : found[h].largest;
    found[h].sum *= own;
#pragma unroll
    for (float& s : sums[h]) s *= own;
#pragma unroll
    for (float& s : scores) s = exp2f(s - base), found[h].sum += s;
  }
};

template <int kLanes, int kHeads>
class Attending {
  using Memory = QueryMemory<kLanes, kHeads>;
  using Finding = chains::Finding<kLanes, kHeads>;
  static constexpr int kDim = Memory::kDim, kFound = kHeads * (kDim + 2);

 public:
  __device__ Attending(const ChainedQuery& query, const Exchange& exchange, Memory& memory,
                       const BlockRows& own)
      : query_(query),
        exchange_(exchange),
        memory_(memory),
        unit_(own.first),
        split_(own.split),
        heads_(query.sizes, kHeads, 0, unit_),
        share_(queries::Share::of<1>(query.sizes, query.sizes.ragged.place_of(0), split_)) {}

  __device__ void run(const Ring& ring, RingPlace& place) {
    const queries::Sizes& s = query_.sizes;
    take_rows();
    if (share_.split >= share_.parts) return;
    Finding finding;
#pragma unroll
    for (int h = 0; h < kHeads; ++h)
      finding.q[h] = Elements(*reinterpret_cast<const Words*>(&memory_.turned[h][8 * finding.piece]));
    const bool in_cache = share_.position >= 0 && share_.position < s.ragged.capacity;
    const int newest = share_.sequence >= 0 && in_cache ? share_.position : -1;
    if (newest >= share_.first && newest < share_.end && heads_.leads(s)) append(newest);
    for (int at = share_.first; at < share_.end; at += Finding::kKeys) {
      ring.filled[place.chunk].wait(place.phase);
      finding.load(ring.memory + place.chunk * kChunkBytes, share_.end - at);
      place.release(ring);
      replace(finding, newest - at);
      finding.see(share_.end - at, s.scale);
    }
    finding.join_slots();
    leave(finding);
    sync_computing();
    tell();
    join();
  }

 private:
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }

  /// Queries, the new key and its value come into shared memory, normalized and rotated: a row for each warp,
  /// whose lanes have pairs of elements that are rotated together.
  __device__ void take_rows() {
    static_assert(kHeads + 2 <= kChainWarps);
    const int row = thread() / 32;
    if (row < heads_.n || row == kHeads || row == kHeads + 1) take_row(row);
    sync_computing();
  }
  __device__ void take_row(int row) {
    constexpr int kPairs = kDim / 64;
    const bool is_q = row < kHeads, is_v = row == kHeads + 1, turned = is_q ? query_.turned : !is_v;
    const int head = is_q ? heads_.first + row : heads_.kv, lane = thread() % 32;
    const Rotation<bf16>::Piece& how = is_q ? query_.fresh.q : query_.fresh.k;
    const bool rotated = turned && how.cosine, beside = rotated && how.interleaved;
    const int step = beside ? 2 : 1, apart = beside ? 1 : kDim / 2;
    float cosine[kPairs], sine[kPairs], of[kPairs][2];
    if (rotated) {
      const int64_t table = int64_t{how.tables.row_of(head)} * how.half;
#pragma unroll
      for (int i = 0; i < kPairs; ++i)
        cosine[i] = widened(how.cosine[table + lane + 32 * i]),
        sine[i] = widened(how.sine[table + lane + 32 * i]);
    }
    take_pairs(is_q ? query_.q : is_v ? query_.v : query_.k, head, step, apart, of);
    if (turned && how.normed) normalize(how, step, apart, of);
    const bool writes = turned && split_ == 0 && (is_q || heads_.leads(query_.sizes));
    const int64_t of_head = int64_t{head} * kDim;
    if (writes && how.normed) put_pairs(is_q ? query_.q_normed : query_.k_normed, of_head, step, apart, of);
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const float a = of[i][0], b = of[i][1];
      if (rotated) of[i][0] = a * cosine[i] - b * sine[i], of[i][1] = a * sine[i] + b * cosine[i];
      for (int e = 0; e < 2; ++e)
        memory_.turned[row][step * (lane + 32 * i) + e * apart] = narrowed<bf16>(of[i][e]);
    }
    if (writes) put_pairs(is_q ? query_.q_turned : query_.k_turned, of_head, step, apart, of);
  }
  template <int n>
  __device__ void take_pairs(const Source& source, int head, int step, int apart, float (&to)[n][2]) const {
    const auto [from, outside] = exchange_.place_of(source);
    const char* const row = from + int64_t{head} * kDim * 2;
    uint16_t of[n][2];
    bool awaited;
    do {
      awaited = false;
#pragma unroll
      for (int i = 0; i < n; ++i)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          of[i][e] = load_now<uint16_t>(row + 2 * (step * (thread() % 32 + 32 * i) + e * apart));
#pragma unroll
      for (int i = 0; i < n; ++i) awaited = awaited || of[i][0] == kAwaited || of[i][1] == kAwaited;
    } while (awaited && !outside);
#pragma unroll
    for (int i = 0; i < n; ++i) to[i][0] = widened(bf16{of[i][0]}), to[i][1] = widened(bf16{of[i][1]});
  }
  template <int n>
  __device__ static void normalize(const Rotation<bf16>::Piece& how, int step, int apart, float (&of)[n][2]) {
    float squares = 0;
    for (const auto& pair : of) squares += pair[0] * pair[0] + pair[1] * pair[1];
    const float scale = how.scale_of(sum_of<32>(squares));
#pragma unroll
    for (int i = 0; i < n; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        of[i][e] = widened(
            how.normalized(narrowed<bf16>(of[i][e]), step * (thread() % 32 + 32 * i) + e * apart, scale));
  }
  template <int n>
  __device__ void put_pairs(const Target& to, int64_t begin, int step, int apart,
                            const float (&of)[n][2]) const {
    if (to.place < 0) return;
#pragma unroll 1
    for (int i = 0; i < 2 * n; ++i)
      exchange_.put(to, Format::bf16, begin + step * (thread() % 32 + 32 * (i / 2)) + i % 2 * apart,
                    of[i / 2][i % 2]);
  }

  __device__ void append(int newest) const {
    const queries::Sizes& s = query_.sizes;
    const int c = thread() * 8;
    if (c >= kDim) return;
    const int64_t to =
        ((int64_t{share_.sequence} * s.kv_heads + heads_.kv) * s.ragged.capacity + newest) * kDim + c;
    memcpy(query_.fresh.k.cache + to, &memory_.turned[kHeads][c], 16);
    memcpy(query_.fresh.v.cache + to, &memory_.turned[kHeads + 1][c], 16);
  }
  /// Number `newest` of the keys that were loaded is not in the caches yet.
  __device__ void replace(Finding& finding, int newest) const {
#pragma unroll
    for (int u = 0; u < Finding::kAtOnce; ++u)
      if (u * Finding::kStep + finding.slot == newest) {
        memcpy(&finding.keys[u], &memory_.turned[kHeads][8 * finding.piece], sizeof(Words));
        memcpy(&finding.values[u], &memory_.turned[kHeads + 1][8 * finding.piece], sizeof(Words));
      }
  }
  __device__ void leave(const Finding& finding) {
    auto& to = memory_.of_warps[thread() / 32];
    const int lane = thread() % 32;
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (lane < kLanes)
        for (int e = 0; e < 8; ++e) to.columns[h][8 * finding.piece + e] = finding.sums[h][e];
      if (lane == 0) to.largest[h] = finding.found[h].largest, to.sums[h] = finding.found[h].sum;
    }
  }
  /// Where block `split` of this unit leaves element `column` of a head; behind the elements the largest
  /// score and the sum of weights.
  __device__ int64_t place(int split, int head, int column) const {
    return query_.partial +
           4 * (int64_t{unit_ * query_.sizes.splits + split} * kFound + head * (kDim + 2) + column);
  }
  /// Joins what the warps found, for the other blocks.
  __device__ void tell() {
    const auto& of = memory_.of_warps;
    static_assert(kHeads * kDim <= kComputing);
    if (const int i = thread(); i < kHeads * kDim) {
      const int h = i / kDim, column = i % kDim;
      queries::Found all;
      const float sum = queries::joined<kChainWarps>(
          kChainWarps, all, [&](int w) { return of[w].largest[h]; }, [&](int w) { return of[w].sums[h]; },
          [&](int w) { return of[w].columns[h][column]; });
      exchange_.put_float(place(split_, h, column), sum);
      if (column == 0) {
        exchange_.put_float(place(split_, h, kDim), all.largest);
        exchange_.put_float(place(split_, h, kDim + 1), all.sum);
      }
    }
  }
  /// Each block that found something joins a part of the elements.
  __device__ void join() {
    constexpr int kLoads = 8;
    const int n = heads_.n * query_.sizes.dim, each = (n + share_.parts - 1) / share_.parts,
              end = n < (split_ + 1) * each ? n : (split_ + 1) * each;
    for (int i = split_ * each + thread(); i < end; i += kComputing) {
      const int h = i / query_.sizes.dim, column = i % query_.sizes.dim;
      float largest = -INFINITY, sum = 0, average = 0;
      for (int begin = 0; begin < share_.parts; begin += kLoads) {
        float columns[kLoads], most[kLoads], sums[kLoads];
        take_found(h, column, begin, columns, most, sums);
        float all = largest;
#pragma unroll
        for (int p = 0; p < kLoads; ++p) all = fmaxf(all, most[p]);
        const float base = all == -INFINITY ? 0 : all, own = exp2f(largest - base);
        sum *= own, average *= own, largest = all;
#pragma unroll
        for (int p = 0; p < kLoads; ++p) {
          const float factor = exp2f(most[p] - base);
          sum += sums[p] * factor, average += columns[p] * factor;
        }
      }
      exchange_.put(query_.y, Format::bf16, int64_t{heads_.first} * query_.sizes.dim + i,
                    sum > 0 ? average / sum : 0);
    }
  }
  /// What parts `begin`, begin + 1, ... found: all loads are under way at once.
  template <int n>
  __device__ void take_found(int h, int column, int begin, float (&columns)[n], float (&most)[n],
                             float (&sums)[n]) const {
    bool awaited;
    do {
      awaited = false;
#pragma unroll
      for (int p = 0; p < n; ++p) {
        const bool there = begin + p < share_.parts;
        const char* const from = exchange_.own + place(there ? begin + p : begin, h, 0);
        const uint32_t a = load_now<uint32_t>(from + 4 * column), b = load_now<uint32_t>(from + 4 * kDim),
                       c = load_now<uint32_t>(from + 4 * (kDim + 1));
        awaited = awaited || a == ~0u || b == ~0u || c == ~0u;
        columns[p] = there ? as_float(a) : 0, most[p] = there ? as_float(b) : -INFINITY,
        sums[p] = there ? as_float(c) : 0;
      }
    } while (awaited);
  }

  const ChainedQuery& query_;
  const Exchange& exchange_;
  Memory& memory_;
  int unit_, split_;
  queries::Heads heads_;
  queries::Share share_;
};

template <int kLanes>
__device__ __noinline__ RingPlace attend(const ChainedQuery& query, Exchange exchange, void* memory,
                                         const BlockRows& own, Ring ring, RingPlace place) {
  if (own.attends)
    Attending<kLanes, 2>(query, exchange, *static_cast<QueryMemory<kLanes, 2>*>(memory), own)
        .run(ring, place);
  sync_computing();  // the memory serves the next step
  return place;
}

}  // namespace weft::cuda::chains
