#include <cstring>

#include "backends/native/ragged.h"
#include "weft/shared/walk.hpp"

// In place: the cost is that of the new rows, not of the cache.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (auto s = shared::arity(c, 4, 1); !s) return s;
  const TypeView cache = c.input(0), rows = c.input(1);
  if (cache.rank() != 4 || rows.rank() != 3 || rows.dtype() != cache.dtype() ||
      rows.max()[1] != cache.max()[1] || rows.max()[2] != cache.max()[3])
    return Support::no("wants a cache [batch, heads, capacity, dim] and rows [tokens, heads, dim] like it");
  if (auto s = accepts_ragged(c.input(2), c.input(3), cache.max()[0]); !s) return s;
  if (c.updates() == 1 && c.raw()->update_inputs[0] == 0) return Support::yes();
  return Support::no("the result must be written over the cache");
}

static Outcome launch(const Launch& l) {
  const TensorView cache = l.output(0), rows = l.input(1);
  const int64_t heads = cache.dim(1), capacity = cache.dim(2);
  const auto row = static_cast<int64_t>(byte_size(cache.dtype())) * cache.dim(3);
  const Ragged it(l.input(2), l.input(3), rows.dim(0), capacity);
  for (int64_t t = 0; t < it.tokens();) {
    const Run run = it.run_at(t);
    const int64_t first = std::max<int64_t>(0, -run.position),
                  last = std::min(run.end - run.begin, capacity - run.position);
    for (int64_t i = first; run.sequence >= 0 && i < last; ++i)
      for (int64_t h = 0; h < heads; ++h)
        std::memcpy(cache.data() + ((run.sequence * heads + h) * capacity + run.position + i) * row,
                    rows.data() + ((t + i) * heads + h) * row, static_cast<size_t>(row));
    t = run.end;
  }
  return Outcome::ok();
}

extern const KernelRecord ragged_cache_append_rows = {
    .op = "ragged_cache_append",
    .variant = "rows",
    .accepts = accepts,
    .launch = launch,
    .in_place = true,
};

}  // namespace weft::native
