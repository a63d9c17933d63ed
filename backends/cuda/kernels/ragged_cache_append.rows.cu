#include <array>

#include "../collect.hpp"
#include "../kernels.hpp"
#include "../ragged.hpp"

// Writes new rows into caches, in place. The rows of keys and values are one launch.
namespace weft::cuda {

using namespace backend;

namespace {

struct alignas(16) Bits16 {
  uint64_t of[2];
};

/// Rows are copied in units U.
template <class U>
struct Appending {
  struct Piece {
    const U* rows;
    U* cache;
    int64_t n;  // units in all rows
    int heads, row;  // units of a row
    Ragged ragged;
  };
  static constexpr int kMost = 4;
  struct Common {
    bool operator==(const Common&) const = default;
  };

  static __device__ void run(const Piece& p, const Common&, int64_t begin, int64_t end) {
    for (int64_t i = begin + threadIdx.x; i < end; i += 256) {
      const int64_t row = i / p.row;
      const int token = static_cast<int>(row / p.heads), head = static_cast<int>(row % p.heads);
      const auto [sequence, position] = p.ragged.place_of(token);
      if (sequence < 0 || position < 0 || position >= p.ragged.capacity) continue;
      p.cache[((int64_t{sequence} * p.heads + head) * p.ragged.capacity + position) * p.row + i % p.row] =
          p.rows[i];
    }
  }
  static Outcome finish(Queue&, const Pieces<Appending>&) { return Outcome::ok(); }
};

Support accepts(const OpCall& c) {
  const TypeView cache = c.input(0), rows = c.input(1);
  if (cache.rank() != 4 || rows.rank() != 3 || rows.dtype() != cache.dtype() ||
      rows.max()[1] != cache.max()[1] || rows.max()[2] != cache.max()[3])
    return Support::no("wants a cache [batch, heads, capacity, dim] and rows [tokens, heads, dim] like it");
  if (c.updates() != 1 || c.raw()->update_inputs[0] != 0)
    return Support::no("the result must be written over the cache");
  if (rows.max()[1] >= int64_t{1} << 24 || rows.max()[2] >= int64_t{1} << 24)
    return Support::no("heads and rows must be below 2^24, got {}", rows.max());
  return takes_ragged(cache, rows.max()[0], c.input(2), c.input(3));
}

template <class U>
Outcome append(const Launch& l) {
  const TensorView rows = l.input(1), cache = l.output(0);
  const int64_t n = rows.bytes() / static_cast<int64_t>(sizeof(U));
  if (n == 0) return Outcome::ok();
  const auto heads = static_cast<int>(rows.dim(1));
  const Ragged ragged = ragged_of(l.input(2), l.input(3), rows.dim(0), cache);
  const auto list = [](TensorView t) { return Range{t.data(), t.data() + t.bytes()}; };
  return collect<Appending<U>>(
      l, {},
      {rows.data<const U>(), cache.data<U>(), n, heads, static_cast<int>(n / (rows.dim(0) * heads)), ragged},
      std::array{list(rows), list(l.input(2)), list(l.input(3))}, std::array{list(cache)});
}

Outcome launch(const Launch& l) {
  const TensorView rows = l.input(1), cache = l.output(0);
  const uint64_t size = byte_size(rows.dtype()), row = static_cast<uint64_t>(rows.dim(2)) * size,
                 places = reinterpret_cast<uintptr_t>(rows.data()) | reinterpret_cast<uintptr_t>(cache.data());
  if (row % 16 == 0 && places % 16 == 0) return append<Bits16>(l);
  switch (size) {
    case 1: return append<uint8_t>(l);
    case 2: return append<uint16_t>(l);
    case 4: return append<uint32_t>(l);
    default: return append<uint64_t>(l);
  }
}

}  // namespace

std::span<const KernelRecord> ragged_cache_append_rows() {
  static const KernelRecord all[] = {{.op = "ragged_cache_append",
                                      .variant = "rows",
                                      .accepts = accepts,
                                      .launch = launch,
                                      .in_place = true}};
  return all;
}

}  // namespace weft::cuda
