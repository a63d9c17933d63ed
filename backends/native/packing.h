#pragma once
#include <array>
#include <memory>
#include <string>

#include "backends/native/gemm.h"
#include "weft/backend.hpp"

// Constants packed once, in the layout that the micro-kernel reads, instead of in each launch.
namespace weft::native {

/// A packing that a kernel wants.
struct Packing {
  std::string id;
  uint64_t bytes;
  uint32_t layout = 1;
};
/// The state of a plan whose kernel wants one input packed.
struct WantsPacked {
  WantsPacked(size_t input, Packing wanted)
      : id(std::move(wanted.id)),
        packing{.size = sizeof(weft_packing),
                .layout = wanted.layout,
                .id = id.c_str(),
                .bytes = wanted.bytes,
                .alignment = 64} {
    list[input] = &packing;
  }
  WantsPacked(const WantsPacked&) = delete;
  std::string id;
  weft_packing packing;
  static constexpr size_t kInputs = 8;
  std::array<const weft_packing*, kInputs> list{};  // by input
};
inline void want_packed(weft_plan& plan, size_t input, std::string id, uint64_t bytes, uint32_t layout = 1) {
  auto wants = std::make_unique<WantsPacked>(input, Packing{std::move(id), bytes, layout});
  backend::write(&plan, &weft_plan::packings, wants->list.data());
  plan.data = wants.release();
}
inline void release_packed(weft_plan* plan) { delete static_cast<WantsPacked*>(plan->data); }

/// The number of elements of a whole packed b. Blocks are ordered by column, then by row.
template <class T>
int64_t packed_size(const Product<T>& p) {
  const int64_t panel = blocks_of(p).panel;
  return (p.n + panel - 1) / panel * panel * p.k;
}
/// The id of that packing; it does not depend on the rows of a.
template <class T>
std::string packed_id(const Product<T>& p) {
  const Blocks b = blocks_of(p);
  return backend::format("native.b.1 {}[{}, {}] by {} {} in blocks of {} {}",
                         p.b_row == 1 ? "transposed" : "", p.k, p.n, static_cast<int64_t>(sizeof(T)), b.panel,
                         b.depth, b.columns);
}

/// Packs the whole b of p.
template <class T>
void pack_whole_b(const backend::Host& host, const Product<T>& p, T* to) {
  const Blocks b = blocks_of(p);
  for (int64_t j = 0; j < p.n; j += b.columns) {
    const Product<T> part = p.part(0, p.m, j, std::min(b.columns, p.n - j));
    const int64_t panels = (part.n + b.panel - 1) / b.panel;
    for (int64_t k = 0; k < p.k; k += b.depth) {
      const int64_t depth = std::min(b.depth, p.k - k);
      T* block = to + packed_at(p, b, j, k);
      host.parallel_for(
          panels, std::max<int64_t>(1, 8192 / (b.panel * depth)),
          [&](int64_t begin, int64_t end) { gemm_table<T>().pack_b(part, k, depth, begin, end, block); });
    }
  }
}

/// Smaller weights are not packed: the gain would be less than the cost of a launch.
constexpr int64_t kLeastPacked = 1 << 10;

}  // namespace weft::native
