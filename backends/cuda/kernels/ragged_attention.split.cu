#include <array>

#include "../chain.hpp"
#include "../chained_attention.hpp"
#include "../collected.hpp"

// Attention of single queries over caches (ragged_attention_kernel.hpp). For one token, it does the rotations
// and writes into caches that wait in the queue, too.
namespace weft::cuda {

using namespace backend;

namespace {

using namespace queries;

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

// Keys are split only as far as there are kMostBlocks blocks, each of which leaves at most two heads.
Outcome prepare(const OpCall& c, weft_plan& plan) {
  if (!wants_equal_bits(c)) plan.determinism = WEFT_DETERMINISM_ANY;  // a chain splits keys in its own way
  const auto dim = static_cast<uint64_t>(c.input(0).max()[2]);
  plan.workspace = kMostBlocks * 2 * (dim + 2) * sizeof(float);
  return Outcome::ok();
}

bool is_aligned(const void* at) { return reinterpret_cast<uintptr_t>(at) % 16 == 0; }

template <class T>
bool can_turn(const typename Rotation<T>::Piece& p, int dim) {
  return 2 * p.half == dim && is_aligned(p.x) && is_aligned(p.y) && is_aligned(p.normed) &&
         is_aligned(p.cache) && is_aligned(p.cosine) && is_aligned(p.sine);
}

// Axes along which a table has one row: for a token most often all.
void drop_repeated(TableRows& tables) {
  bool one = true;
  for (int d = 0; d < tables.axes; ++d) one = one && (tables.strides[d] == 0 || tables.sizes[d] == 1);
  if (one) tables.axes = 0;
}

// What waits last in the queue, if it is all of what the call needs and nothing else; it is taken from there.
// The call's results must not lie where the rows to be turned do.
template <class T>
Fresh<T> take_fresh(const Launch& l, Queue& queue, const Sizes& s) {
  const TensorView q = l.input(0), k = l.input(1), v = l.input(2);
  const std::lock_guard lock(queue.collecting);
  auto* const open = dynamic_cast<CollectedOf<Rotation<T>>*>(queue.collected.last());
  const std::array writes = {range_of(l.output(0)), range_of(l.workspace())};
  if (!open || q.dim(0) != 1 || s.dim % 16 != 0 || !s.aligned || open->depends({}, writes)) return {};
  Fresh<T> fresh{};
  for (const auto& p : open->pieces()) {
    auto& place = p.cache == k.data<T>() ? fresh.k : p.cache == v.data<T>() ? fresh.v : fresh.q;
    const bool fits =
        p.cache ? p.heads == s.kv_heads && p.ragged == s.ragged : p.y == q.data<T>() && p.n * 2 == q.size();
    if (place.x || !fits || !can_turn<T>(p, s.dim)) return {};
    place = p;
    drop_repeated(place.tables);
  }
  if (!fresh.k.x || !fresh.v.x || fresh.v.normed || fresh.v.y) return {};
  queue.collected.drop_last();
  return fresh;
}

template <class T, int kLanes, int kHeads, int kBlocks>
Outcome search_split(const Launch& l, Sizes s, int64_t blocks) {
  const TensorView q = l.input(0), y = l.output(0);
  // Blocks that have the keys of a query, which come as clusters.
  const int64_t useful = kBlocks > 1 && s.ragged.capacity <= kClusterKeys
                             ? kBlocks
                             : (s.ragged.capacity + kLeastKeys - 1) / kLeastKeys,
                most = std::max<int64_t>(std::min<int64_t>(useful, kMostSplits), 1);
  s.splits = static_cast<int>(std::clamp<int64_t>(kMostBlocks / blocks, 1, most));
  s.splits = std::max(s.splits / kBlocks, 1) * kBlocks;
  const Fresh<T> fresh = take_fresh<T>(l, queue_of(l), s);
  const Grid grid{static_cast<unsigned>(s.splits), static_cast<unsigned>(s.kv_heads * s.groups),
                  static_cast<unsigned>(q.dim(0))};
  const T *const keys = l.input(1).data<const T>(), *const values = l.input(2).data<const T>();
  const auto alone = [=, q = q.data<const T>(), y = y.data<T>(),
                      found = l.workspace().data<float>()](Queue& queue) {
    return start_on(queue, grid, {kThreads, kBlocks}, 0, search_keys<T, kLanes, kHeads, kBlocks>, q, keys,
                    values, y, found, queue.counters(), s, fresh);
  };
  Queue& queue = queue_of(l);
  const std::lock_guard lock(queue.collecting);
  if (auto settled = settle_locked(queue); !settled.good()) return settled;
  if constexpr (std::is_same_v<T, bf16>)
    if (queue.chain && !wants_equal_bits(l.call()) &&
        queue.chain->add({q.data<const T>(), keys, values, y.data<T>(), s, fresh}, alone))
      return Outcome::ok();
  return alone(queue);
}

// Clusters, where the device has them and queries alone are too few for it.
template <class T, int kLanes, int kHeads>
Outcome search(const Launch& l, Sizes s) {
  s.groups = (s.shared_by + kHeads - 1) / kHeads;
  const int64_t blocks = l.input(0).dim(0) * s.kv_heads * s.groups;
  if (kCluster > 1 && queue_of(l).device.clusters && blocks * kCluster <= 2 * kMostBlocks)
    return search_split<T, kLanes, kHeads, kCluster>(l, s, blocks);
  return search_split<T, kLanes, kHeads, 1>(l, s, blocks);
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
      return s.shared_by == 1 ? search<T, kLanes, 1>(l, s) : search<T, kLanes, 2>(l, s);
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
                                      .launch = launch,
                                      // How keys are split depends on how many queries there are.
                                      .determinism = WEFT_DETERMINISM_RUN}};
  return all;
}

}  // namespace weft::cuda
