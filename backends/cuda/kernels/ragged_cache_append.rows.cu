#include "../rotation.hpp"
#include "../rows.hpp"

// Writes new rows into caches, in place. Rows whose rotation still waits in the queue are written by it.
namespace weft::cuda {

using namespace backend;

namespace {

Support accepts(const OpCall& c) {
  const TypeView cache = c.input(0), rows = c.input(1);
  if (cache.rank() != 4 || rows.rank() != 3 || rows.dtype() != cache.dtype() ||
      rows.max()[1] != cache.max()[1] || rows.max()[2] != cache.max()[3])
    return Support::no("wants a cache [batch, heads, capacity, dim] and rows [tokens, heads, dim] like it");
  if (c.updates() != 1 || c.raw()->update_inputs[0] != 0)
    return Support::no("the result must be written over the cache");
  if (rows.max()[2] % 2)
    return Support::no("rows must have an even number of elements, got {}", rows.max()[2]);
  if (auto s = takes_rows(rows); !s) return s;
  return takes_ragged(cache, rows.max()[0], c.input(2), c.input(3));
}

template <class T>
Outcome append(const Launch& l) {
  using Work = Rotation<T>;
  const TensorView rows = l.input(1), cache = l.output(0);
  const std::array reads = {range_of(l.input(2)), range_of(l.input(3)), range_of(rows)};
  const std::array writes = {range_of(cache)};
  typename Work::Piece piece{};
  piece.n = rows.size() / 2, piece.half = static_cast<int>(rows.dim(2) / 2);
  piece.heads = static_cast<int>(rows.dim(1)), piece.cache = cache.data<T>();
  piece.ragged = ragged_of(l.input(2), l.input(3), rows.dim(0), cache);
  {
    Queue& queue = queue_of(l);
    const std::lock_guard lock(queue.collecting);
    const auto places = std::span(reads).first(2);
    typename Work::Piece* rotation = nullptr;
    auto* const open = queue.collected.find<CollectedOf<Work>>(reads, writes, [&](auto& all) {
      rotation = all.find([&](const auto& p) {
        return p.y == rows.data<const T>() && p.n == piece.n && p.half == piece.half && !p.cache;
      });
      return rotation && !all.depends(places, writes);
    });
    if (open) {
      rotation->cache = piece.cache, rotation->heads = piece.heads, rotation->ragged = piece.ragged;
      open->uses(places, writes);
      return Outcome::ok();
    }
  }
  piece.x = rows.data<const T>();
  return collect<Work>(l, {}, piece, reads, writes);
}

Outcome launch(const Launch& l) {
  if (l.input(1).size() == 0) return Outcome::ok();
  return with_type(l.input(1).dtype(), [&]<class T>(T*) { return append<T>(l); });
}

}  // namespace

std::span<const KernelRecord> ragged_cache_append_rows() {
  static const KernelRecord all[] = {{.op = "ragged_cache_append",
                                      .variant = "rows",
                                      .accepts = accepts,
                                      .launch = launch,
                                      .joins = true,
                                      .in_place = true}};
  return all;
}

}  // namespace weft::cuda
