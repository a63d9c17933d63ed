#pragma once
#include <array>

#include "weft/shared/walk.hpp"

// random_bits: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
namespace weft::shared {

/// Four words from a counter and a key.
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xd2511f53} * c[0], p1 = uint64_t{0xcd9e8d57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(p0)};
    key = {key[0] + 0x9e3779b9u, key[1] + 0xbb67ae85u};
  }
  return c;
}

namespace detail {
inline Support accepts_random_bits(const OpCall& c) {
  if (auto s = arity(c, 1, 2); !s) return s;
  const TypeView state = c.input(0), bits = c.output(0), next = c.output(1);
  if (state.dtype() != DType::u64 || next.dtype() != DType::u64 || state.rank() != 1 || state.max()[0] != 2)
    return Support::no("the state must be u64[2], got {}{}", state.dtype(), state.max());
  if (bits.dtype() != DType::u32) return Support::no("bits must be u32, got {}", bits.dtype());
  return Support::yes();
}

inline Outcome launch_random_bits(const Launch& l) {
  const uint64_t* state = l.input(0).data<uint64_t>();
  const uint64_t key = state[0], counter = state[1];  // read first: `next` may lie over the state
  uint32_t* bits = l.output(0).data<uint32_t>();
  const int64_t n = l.output(0).size(), blocks = (n + 3) / 4;
  l.host().parallel_for(blocks, kGrain / 16, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const uint64_t at = counter + static_cast<uint64_t>(block);
      const auto words = philox({static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0},
                                {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
      for (int64_t i = 4 * block; i < std::min(n, 4 * block + 4); ++i) bits[i] = words[i % 4];
    }
  });
  uint64_t* next = l.output(1).data<uint64_t>();
  next[0] = key;
  next[1] = counter + static_cast<uint64_t>(blocks);
  return Outcome::ok();
}
}  // namespace detail

/// Element i is word i mod 4 of philox(counter + i div 4); next = key, counter + ceil(n / 4).
inline std::array<KernelRecord, 1> random_records() {
  return {KernelRecord{.op = "random_bits",
                       .variant = "shared",
                       .reads = {"shape"},
                       .accepts = detail::accepts_random_bits,
                       .launch = detail::launch_random_bits,
                       .determinism = WEFT_DETERMINISM_DEVICES,
                       .in_place = true}};
}

}  // namespace weft::shared
