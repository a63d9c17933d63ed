#include "skinny_launch.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "../start.hpp"
#include "skinny_ring.hpp"
#include "tensor_map.hpp"

// From products that were collected to a launch of multiply_ring.
namespace weft::cuda::skinny {

namespace {

constexpr size_t kMostShared = size_t{226} << 10;  // of a block
// Bytes of weights; with fewer, multiply_skinny is as fast.
constexpr int64_t kLeastBytes = int64_t{48} << 20, kLeastBytesOfOne = int64_t{6} << 20;
constexpr double kCostOfRow = 0.25;  // of x, which comes from the second cache, beside one of the weights

std::span<const Item> all_of(const Items& items) { return {items.all, static_cast<size_t>(items.n)}; }
int most_rows(const Items& items) {
  int most = 0;
  for (const Item& i : all_of(items)) most = std::max(most, i.rows);
  return most;
}
int tiles_of(const Item& item, int rows) {
  const int each = rows / item.products;
  return (item.n + each - 1) / each;
}

/// Tiles of 16 rows of the weights that a block has at a time: those with which the last block ends first.
/// What is read of x for each of them counts, too.
int best_tiles(const Items& items, int blocks) {
  int best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (const int tiles : {6, 4, 3, 2, 1}) {
    int all = 0;
    for (const Item& i : all_of(items)) all += tiles_of(i, 16 * tiles);
    const int rounds = (all + blocks - 1) / blocks;
    const double time = rounds * (16 * tiles + kCostOfRow * most_rows(items));
    if (time < least) best = tiles, least = time;
  }
  return best;
}

/// Whether a launch is one product, of which each block has one tile.
bool is_one(const Items& items, int tiles, int blocks) {
  return items.n == 1 && items.all[0].products == 1 && tiles_of(items.all[0], 16 * tiles) <= blocks;
}

/// Whether a launch of such tiles is for the ring: others are left to multiply_skinny.
bool takes(const Queue& queue, const Items& items, int tiles) {
  if (queue.device.architecture != 90 || items.n == 0 || items.has_norm || most_rows(items) < 2) return false;
  int maps = 0;
  int64_t bytes = 0;
  for (const Item& i : all_of(items)) {
    if (!i.aligned) return false;
    maps += i.products, bytes += int64_t{2} * i.products * i.n * i.k;
  }
  const bool one = is_one(items, tiles, queue.device.multiprocessors);
  return maps <= kMostMaps && bytes >= (one ? kLeastBytesOfOne : kLeastBytes);
}

template <class T, class Shape>
Outcome add_item(Ring& ring, const Item& item, uint8_t& maps) {
  RingHead& head = ring.head;
  RingItem& own = head.of[head.n];
  own = {item.x, head.tiles, item.k, item.products, static_cast<uint8_t>(item.rows), {}};
  for (int p = 0; p < item.products; ++p) {
    own.maps[p] = maps;
    const int rows = Shape::kRows / item.products;
    auto made = hopper::make_tensor_map(
        &ring.maps[maps++], std::is_same_v<T, bf16> ? DType::bf16 : DType::f16, item.weights[p],
        hopper::TensorLayout<2>{{item.k, item.n}, {item.k}, {Shape::kRowsTogether, rows}});
    if (!made.good()) return made;
  }
  ring.items[head.n++] = item;
  head.tiles += tiles_of(item, Shape::kRows);
  if (item.n_steps > 1 || item.n_results > 1) head.steps = std::max<int>(head.steps, item.n_steps);
  return Outcome::ok();
}

/// Stages of a block with so many tiles: those that it fills, as far as there is room.
template <class Shape>
int stages_of(const Items& items, int tiles, int steps) {
  int depth = 0;
  for (const Item& i : all_of(items)) depth = std::max(depth, (i.k + Shape::kDepth - 1) / Shape::kDepth);
  const size_t none = Shape::shared_bytes(0, steps), each = Shape::shared_bytes(1, steps) - none;
  return std::min(static_cast<int>((kMostShared - none) / each), depth * tiles);
}

template <class T, int kTiles, int kSumTiles, bool kOne>
Outcome launch_ring(Queue& queue, const Items& items) {
  using Shape = RingShape<kTiles, kSumTiles>;
  Ring ring{};
  ring.early = items.early;
  uint8_t maps = 0;
  for (const Item& i : all_of(items))
    if (auto added = add_item<T, Shape>(ring, i, maps); !added.good()) return added;
  RingHead& head = ring.head;
  const int blocks = std::min(head.tiles, queue.device.multiprocessors);
  head.stages = stages_of<Shape>(items, (head.tiles + blocks - 1) / blocks, head.steps);
  return start_on(queue, {static_cast<unsigned>(blocks)}, Shape::kThreadsOfAll,
                  Shape::shared_bytes(head.stages, head.steps), multiply_ring<T, kTiles, kSumTiles, kOne>,
                  ring);
}

template <class T, int kSumTiles>
Outcome launch_tiles(Queue& queue, const Items& items, int tiles) {
  const auto launch = [&]<int kTiles>() {
    return is_one(items, tiles, queue.device.multiprocessors)
               ? launch_ring<T, kTiles, kSumTiles, true>(queue, items)
               : launch_ring<T, kTiles, kSumTiles, false>(queue, items);
  };
  switch (tiles) {
    case 1: return launch.template operator()<1>();
    case 2: return launch.template operator()<2>();
    case 3: return launch.template operator()<3>();
    case 4: return launch.template operator()<4>();
    default: return launch.template operator()<6>();
  }
}

}  // namespace

template <class T>
std::optional<Outcome> run_ring(Queue& queue, const Items& items) {
  const int tiles = best_tiles(items, queue.device.multiprocessors);
  if (!takes(queue, items, tiles)) return std::nullopt;
  return most_rows(items) <= 8 ? launch_tiles<T, 1>(queue, items, tiles)
                               : launch_tiles<T, 2>(queue, items, tiles);
}
template std::optional<Outcome> run_ring<f16>(Queue&, const Items&);
template std::optional<Outcome> run_ring<bf16>(Queue&, const Items&);

}  // namespace weft::cuda::skinny
