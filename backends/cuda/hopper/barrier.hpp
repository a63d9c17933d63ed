#pragma once
#include <cuda_runtime.h>

#include <cstdint>

// Barriers in shared memory (mbarrier), of clusters, and of some of a block's threads.
namespace weft::cuda::hopper {

/// The address of an object in shared memory as instructions want it.
__device__ inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

/// A barrier of shared memory. A phase ends when as many threads have arrived as `init` says and all bytes
/// have come that were announced. Phases are numbered from 0; who waits says the phase's lowest bit. A wait
/// for phase 1 returns at once on a new barrier, as if a phase before the first had ended.
class Barrier {
 public:
  /// By one thread, before any other uses it; show_barriers and a sync follow.
  __device__ void init(uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(this)), "r"(arrivals));
  }
  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(this)) : "memory");
  }
  /// Arrives, and announces bytes of copies that end at this barrier.
  __device__ void arrive_expecting(uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(this)),
                 "r"(bytes)
                 : "memory");
  }
  /// Whether the phase has ended; waits for a short time that the hardware chooses.
  __device__ bool has_ended(uint32_t phase) {
    uint32_t ended;
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}"
        : "=r"(ended)
        : "r"(shared_address(this)), "r"(phase)
        : "memory");
    return ended != 0;
  }
  __device__ void wait(uint32_t phase) {
    while (!has_ended(phase)) {
    }
  }
  /// Waits, and then sees what other blocks of the cluster have sent.
  __device__ void wait_for_cluster(uint32_t phase) {
    uint32_t ended;
    do {
      asm volatile(
          "{\n"
          ".reg .pred p;\n"
          "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
          "selp.u32 %0, 1, 0, p;\n"
          "}"
          : "=r"(ended)
          : "r"(shared_address(this)), "r"(phase)
          : "memory");
    } while (ended == 0);
  }

 private:
  uint64_t state_;
};

/// Makes new barriers visible to the cluster and to copies.
__device__ inline void show_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/// Makes what this thread wrote to shared memory visible to copies and products, which read it by another
/// path ("async proxy"). A sync follows, then the copy.
__device__ inline void show_shared_writes() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// Waits until so many threads have come to barrier `id`, 1 to 15 (0 is that of sync_block).
__device__ inline void sync_threads(int id, int threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/// Comes to the barrier, and does not wait.
__device__ inline void arrive_threads(int id, int threads) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// x; must be called by the first thread of a warp (lane 0) alone. The compiler knows the result to be the
/// same in all threads, and keeps what follows from it in uniform registers. The operands of a copy by the
/// TMA unit must be there; where the compiler does not know, it has each moved there in a loop over the
/// threads, which takes longer than starting the copy.
__device__ inline int uniform(int x) { return __reduce_max_sync(1, x); }
/// x, which is equal in all 32 threads of a warp; must be called by all of them. For addresses of wgmma's
/// operands, whose descriptors must be in uniform registers, too.
__device__ inline uint32_t uniform_in_warp(uint32_t x) { return __reduce_max_sync(~0u, x); }

/// True in one thread of the warp, all of whose threads are here.
__device__ inline bool elected() {
  uint32_t is_chosen;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}"
      : "=r"(is_chosen));
  return is_chosen != 0;
}

/// Hands registers back, or takes more, until each thread of the warpgroup has n: a multiple of 8 from 24 to
/// 240. The block begins with as many for each thread as the kernel was compiled for.
template <int n>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n));
}
template <int n>
__device__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n));
}

/// Registers of a thread that copies and of one that multiplies, beside `groups` warpgroups of these.
/// Together warpgroups have what the block begins with: 168 a thread for three, 128 for four. More would
/// never come.
template <int groups>
struct Registers {
  static_assert(groups == 2 || groups == 3);
  static constexpr int kBegin = groups == 2 ? 168 : 128, kCopy = groups == 2 ? 24 : 32,
                       kMultiply = groups == 2 ? 240 : 160;
  static_assert(kCopy + groups * kMultiply <= (groups + 1) * kBegin);
};

}  // namespace weft::cuda::hopper
