#pragma once

// What kernels of chains are written in beside kernel.hpp: barriers and copies of a GPU of architecture 9.0,
// and loads and stores of what other blocks read and write at the same time. The emulated backend has the
// same names for a CPU.
#ifdef WEFT_EMULATED
#include "../../emulated/chains.hpp"
#else
#include "../hopper/barrier.hpp"
#include "../kernel.hpp"

namespace weft::cuda::chains {

using hopper::Barrier;
using hopper::show_barriers;
using hopper::sync_threads;

/// Weights are read once: with this, other lines stay in the second cache.
__device__ inline uint64_t read_once() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
/// Copies a multiple of 16 bytes to shared memory; they count at the barrier.
__device__ inline void copy_bytes(void* to, const void* from, uint32_t bytes, Barrier& barrier,
                                  uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, "
      "[%3], "
      "%4;" ::"r"(hopper::shared_address(to)),
      "l"(from), "r"(bytes), "r"(hopper::shared_address(&barrier)), "l"(policy)
      : "memory");
}

/// 16 bytes of shared memory.
template <class P>
__device__ P load_shared(const P* from) {
  uint32_t w[4];
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
               : "r"(hopper::shared_address(from)));
  P all;
  memcpy(&all, w, sizeof all);
  return all;
}

/// What other blocks may be writing. T has 2, 4 or 16 bytes; each of its numbers is old or new.
template <class T>
__device__ T load_now(const void* from) {
  T x;
  if constexpr (sizeof(T) == 16) {
    uint32_t w[4];
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "l"(from)
                 : "memory");
    memcpy(&x, w, sizeof x);
  } else if constexpr (sizeof(T) == 4) {
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(from) : "memory");
  } else {
    static_assert(sizeof(T) == 2);
    asm volatile("ld.relaxed.gpu.global.u16 %0, [%1];" : "=h"(x) : "l"(from) : "memory");
  }
  return x;
}
__device__ inline void store_now(void* to, uint32_t w) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(w) : "memory");
}
__device__ inline void store_now(void* to, uint16_t h) {
  asm volatile("st.relaxed.gpu.global.u16 [%0], %1;" ::"l"(to), "h"(h) : "memory");
}

}  // namespace weft::cuda::chains
#endif
