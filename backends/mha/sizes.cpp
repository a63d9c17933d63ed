#include "sizes.h"

#include <algorithm>
#include <cmath>

namespace weft::mha {

using namespace backend;

namespace {

constexpr int64_t kMostBlocks = 65535, kMostNumbers = int64_t{1} << 31;

Support known(TypeView t, const char* name) {
  for (int64_t i = 0; i < t.rank(); ++i) {
    const Dim size = t.shape()[i];
    if (!size.known()) return Support::no("{} has sizes from {} to {}", name, size.min(), size.max());
    if (size.max() == 0) return Support::no("{} is empty", name);
  }
  return Support::yes();
}

/// Heads as wide as the tiles, or narrower ones whose rows begin at multiples of 16 bytes.
Support widths(int64_t k, int64_t v) {
  if (k % 8 || k > 128) return Support::no("heads of a multiple of 8 numbers, 128 at most, got {}", k);
  return k == v ? Support::yes() : Support::no("v must be as wide as k, got {} and {}", v, k);
}

/// Beyond these the kernels' grids and their 32-bit products of sizes end.
Support limits(const Sizes& s) {
  if (s.batch > kMostBlocks || s.heads > kMostBlocks)
    return Support::no("at most {} sequences and heads, got {} and {}", kMostBlocks, s.batch, s.heads);
  if (const int64_t rows = std::max(s.padded_rows(), s.seq_k + 128);
      s.heads * rows >= kMostNumbers / s.tile() || s.batch * s.heads >= kMostNumbers / rows)
    return Support::no("{} x {} heads of {} and {} rows", s.batch, s.heads, s.seq_q, s.seq_k);
  return Support::yes();
}

void read_sizes(const OpCall& c, Sizes& s) {
  const auto q = c.input(0).max(), k = c.input(1).max();
  const auto at = [](std::span<const int64_t> sizes, size_t from_end) {
    return sizes[sizes.size() - from_end];
  };
  s.dtype = c.input(0).dtype();
  s.seq_first = c.attr("seq_first").integer(), s.causal = c.attr("causal").integer();
  s.heads = at(q, s.seq_first ? 2 : 3), s.kv_heads = at(k, s.seq_first ? 2 : 3);
  s.seq_q = at(q, s.seq_first ? 3 : 2), s.seq_k = at(k, s.seq_first ? 3 : 2);
  s.dim = q.back(), s.batch = 1;
  for (const int64_t size : q.first(q.size() - 3)) s.batch *= size;
  const double scale = c.attr("scale").real();
  s.scale = static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(s.dim)));
}

}  // namespace

Support sizes_of(const OpCall& c, int64_t mask, Sizes& s) {
  if (c.input(mask).has() || c.input(mask + 1).has()) return Support::no("no mask and no length");
  for (const auto& [i, name] : {std::pair{0, "q"}, {1, "k"}, {2, "v"}})
    if (auto all = known(c.input(i), name); !all) return all;
  read_sizes(c, s);
  if (s.dtype != DType::f16 && s.dtype != DType::bf16)
    return Support::no("computes on f16 and bf16, got {}", s.dtype);
  if (c.precision() < WEFT_PRECISION_BF16)
    return Support::no("rounds weights to 16 bits before they are multiplied; --precision bf16 allows that");
  if (auto fit = widths(s.dim, c.input(2).max().back()); !fit) return fit;
  if (auto fit = limits(s); !fit) return fit;
  if (s.causal && s.seq_q > s.seq_k) return Support::no("{} queries of {} keys", s.seq_q, s.seq_k);
  if (!(s.scale > 0)) return Support::no("a scale above 0, got {}", s.scale);
  return Support::yes();
}

}  // namespace weft::mha
