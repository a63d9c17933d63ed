#include <algorithm>
#include <cstring>

#include "weft/shared/walk.hpp"

// In place: the cost is that of the new rows, not of the cache.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (auto s = shared::arity(c, 3, 1); !s) return s;
  const TypeView cache = c.input(0), rows = c.input(1), length = c.input(2);
  const auto rank = static_cast<size_t>(cache.rank());
  if (rank < 3 || rows.rank() != cache.rank() || rows.dtype() != cache.dtype())
    return Support::no("wants a cache and rows of one dtype and rank");
  for (size_t d = 0; d < rank; ++d)
    if (d != rank - 2 && rows.max()[d] != cache.max()[d])
      return Support::no("rows {} do not fit into the cache {}", rows.max(), cache.max());
  const bool each = std::ranges::equal(length.max(), cache.max().first(rank - 3));
  if ((length.dtype() != DType::i32 && length.dtype() != DType::i64) || !(length.rank() == 0 || each))
    return Support::no("length must be whole numbers, one or {}", cache.max().first(rank - 3));
  if (c.updates() == 1 && c.raw()->update_inputs[0] == 0) return Support::yes();
  return Support::no("the result must be written over the cache");
}

static Outcome launch(const Launch& l) {
  const TensorView cache = l.output(0), rows = l.input(1), length = l.input(2);
  const int64_t rank = cache.rank(), heads = cache.dim(rank - 3), capacity = cache.dim(rank - 2),
                n = rows.dim(rank - 2);
  const auto row = static_cast<int64_t>(byte_size(cache.dtype())) * cache.dim(rank - 1);
  const int64_t matrices = shared::product(cache.dims().first(static_cast<size_t>(rank - 2)));
  for (int64_t i = 0; i < matrices; ++i) {
    const int64_t sequence = length.rank() == 0 ? 0 : i / heads;
    const int64_t at =
        length.dtype() == DType::i32 ? length.data<int32_t>()[sequence] : length.data<int64_t>()[sequence];
    if (at <= -n || at >= capacity) continue;
    const int64_t first = std::max<int64_t>(0, -at), last = std::min(n, capacity - at);
    std::memcpy(cache.data() + (i * capacity + at + first) * row, rows.data() + (i * n + first) * row,
                static_cast<size_t>((last - first) * row));
  }
  return Outcome::ok();
}

extern const KernelRecord cache_append_rows = {
    .op = "cache_append",
    .variant = "rows",
    .accepts = accepts,
    .launch = launch,
    .in_place = true,
};

}  // namespace weft::native
