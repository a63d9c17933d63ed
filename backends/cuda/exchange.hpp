#pragma once
#include "kernel.hpp"
#if defined(__CUDACC__) && !defined(__HIP__)
#include "hopper/barrier.hpp"
#endif

// Exchange of partial sums between the warps that share a row.
namespace weft::cuda {

/// The mean of some elements, and the sum of squares about it.
struct Spread {
  float mean, squares;
};

/// Rows are numbered from 0, and each warp sends what it has of a row, two floats, waits, and reads. Nobody
/// sends row n + 2 before all have sent row n + 1, so before all have read row n: two buffers are enough.
/// Where a row is sent before the one before it is waited for, it takes four. In shared memory.
template <int kShares, int kCluster, class X = Spread, uint32_t kBuffers = 2>
struct Exchange {
  static_assert(kCluster == 1 && sizeof(X) == 2 * sizeof(float));

  __device__ void open() {}
  __device__ void wait_until_open() {}
  /// Share number `share` of row n, from the warp's first lane.
  __device__ void send(uint32_t n, int share, int lane, X x) {
    if (lane == 0) of[n % kBuffers][share] = x;
  }
  __device__ void wait(uint32_t, bool) { sync_block(); }
  __device__ X read(uint32_t n, int share) const { return of[n % kBuffers][share]; }

  X of[kBuffers][kShares];
};

#if defined(__CUDACC__) && !defined(__HIP__)

/// Among the blocks of a cluster, each of which is sent all shares; a barrier counts their bytes.
template <int kShares, int kCluster, class X, uint32_t kBuffers>
  requires(kCluster > 1)
struct Exchange<kShares, kCluster, X, kBuffers> {
  /// By all threads of the cluster, before all else; wait_until_open comes before the first row is sent.
  __device__ void open() {
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) {
      for (auto& barrier : came) {
        barrier.init(1);
        barrier.arrive_expecting(sizeof of[0]);
      }
      hopper::show_barriers();
    }
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
  }
  __device__ void wait_until_open() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
  }
  __device__ void send(uint32_t n, int share, int lane, X x) {
#if __CUDA_ARCH__ >= 900
    if (lane >= kCluster) return;
    const uint32_t at = n % kBuffers, to = in_block(&of[at][share], lane),
                   barrier = in_block(&came[at], lane);
    float two[2];
    memcpy(two, &x, sizeof two);
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(to),
        "f"(two[0]), "f"(two[1]), "r"(barrier)
        : "memory");
#endif
  }
  /// `first`: in one thread of the block.
  __device__ void wait(uint32_t n, bool first) {
#if __CUDA_ARCH__ >= 900
    hopper::Barrier& barrier = came[n % kBuffers];
    barrier.wait_for_cluster(n / kBuffers % 2);
    if (first) barrier.arrive_expecting(sizeof of[0]);
#endif
  }
  __device__ X read(uint32_t n, int share) const { return of[n % kBuffers][share]; }

  X of[kBuffers][kShares];
  hopper::Barrier came[kBuffers];

 private:
#if __CUDA_ARCH__ >= 900
  __device__ static uint32_t in_block(const void* own, int rank) {
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(hopper::shared_address(own)), "r"(rank));
    return there;
  }
#endif
};

#endif

}  // namespace weft::cuda
