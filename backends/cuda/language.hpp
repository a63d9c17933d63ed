#pragma once
#include <cuda_runtime.h>

#include "start.hpp"

// The language of kernels (kernel.hpp), on CUDA.
namespace weft::cuda {

inline constexpr int kWarp = 32;
/// Whether multiply_add is faster than multiply-adds of f32, also where each number takes six of it.
inline constexpr bool kHasMatrixUnits = true;

/// Whether blocks may have shared memory of any size.
inline constexpr bool kAnyShared = false;

/// Blocks of a cluster: they run at the same time, and read each other's shared memory.
inline constexpr int kCluster = 8;

#ifdef __CUDACC__

__device__ inline void sync_block() { __syncthreads(); }
__device__ inline void sync_warp() { __syncwarp(); }

/// Waits for all blocks of a cluster that have not ended. What they wrote into their shared memory is seen.
template <int n>
__device__ void sync_cluster() {
#if __CUDA_ARCH__ >= 900
  if constexpr (n > 1) {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
    return;
  }
#endif
  sync_block();
}
/// A place of this block's shared memory, in block number `rank` of the cluster.
template <class T>
__device__ const T* in_block_of_cluster(const T* own, int rank) {
#if __CUDA_ARCH__ >= 900
  const T* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(own), "r"(rank));
  return there;
#else
  return own;
#endif
}
template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(128) char bytes[];
  return reinterpret_cast<T*>(bytes);
}
template <class T>
__device__ T shuffle_xor(T x, int mask) {
  return __shfl_xor_sync(~0u, x, mask);
}
/// x of lane `from`.
template <class T>
__device__ T shuffle(T x, int from) {
  return __shfl_sync(~0u, x, from);
}

/// Whether it is true in any thread of the warp.
__device__ inline bool any_of_warp(bool x) { return __any_sync(~0u, x); }
/// A sync_block that tells whether it is true in any thread of the block.
__device__ inline bool any_of_block(bool x) { return __syncthreads_or(x); }

/// What this thread wrote is seen by threads of other blocks before what it writes next.
__device__ inline void fence_device() { __threadfence(); }

/// What another block wrote before its fence.
__device__ inline float load_shared_by_blocks(const float* from) { return __ldcg(from); }

/// What a kernel before may still be writing: some value that it has had.
template <class T>
__device__ T load_early(const T* from) {
  return *static_cast<const volatile T*>(from);
}
/// Has the bytes around it come to the second cache, which is that of all blocks.
__device__ inline void prefetch(const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

/// 16 bytes that are read once: they need no place in the first cache.
template <class P>
__device__ P load_streamed(const void* from) {
  static_assert(sizeof(P) == 16);
  uint32_t w[4];
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
               : "l"(from));
  P all;
  memcpy(&all, w, sizeof all);
  return all;
}

/// 16 bytes that are not read soon: others stay in the second cache.
template <class P>
__device__ void store_streamed(void* to, const P& all) {
  static_assert(sizeof(P) == 16);
  uint32_t w[4];
  memcpy(w, &all, sizeof all);
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(w[0]), "r"(w[1]), "r"(w[2]),
               "r"(w[3])
               : "memory");
}

__device__ inline float float_of_half(uint16_t bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
__device__ inline uint16_t half_of_float(float x) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
__device__ inline uint16_t bfloat_of_float(float x) {
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
/// Two of them as the halves of a register, the first one below.
__device__ inline uint32_t halves_of_floats(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
__device__ inline uint32_t bfloats_of_floats(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

/// Has 16 bytes lie in registers as they are: the compiler does not compute on them before.
template <class P>
__device__ void keep_in_registers(P& all) {
  static_assert(sizeof(P) == 16);
  uint32_t w[4];
  memcpy(w, &all, sizeof all);
  asm volatile("" : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3]));
  memcpy(&all, w, sizeof all);
}

/// 1 / sqrt(x) with an error of two units in the last place.
__device__ inline float fast_inverse_root(float x) {
  float y;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// With an error of two units in the last place; results below the least normal number are 0.
__device__ inline float fast_exp(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f));
  return y;
}

/// 16 bytes from global to shared memory; they are there after wait_for_copies and a sync. Zeros if not
/// `read`.
__device__ inline void copy_async(void* shared, const void* global, bool read) {
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(read ? 16 : 0)
               : "memory");
}
/// Ends a group of copies.
__device__ inline void end_of_copies() { asm volatile("cp.async.commit_group;"); }
/// Waits until at most n groups of copies of this thread are pending.
template <int n>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
}

/// Code before this may run while the previous kernel drains, so it must not touch memory that others write.
__device__ inline void wait_for_kernels_before() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
/// Lets the next kernel start; it waits for the end of this one before it touches memory.
__device__ inline void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// Four 8 x 8 matrices of 16-bit elements from shared memory: lane i points to row i % 8 of matrix i / 8, and
/// gets elements 2 * (lane % 4) and the one after it of row lane / 4 of each.
__device__ inline void load_matrices(uint32_t (&to)[4], const void* row) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at));
}
/// The same of the transposed matrices: elements 2 * (lane % 4) and the one after it of column lane / 4.
__device__ inline void load_matrices_transposed(uint32_t (&to)[4], const void* row) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at));
}

struct f16;
struct bf16;

/// The larger ones of the halves of two registers, 16-bit floats each; of a NaN and another, the other.
template <class T>
__device__ uint32_t larger_halves(uint32_t a, uint32_t b);
template <>
__device__ inline uint32_t larger_halves<f16>(uint32_t a, uint32_t b) {
  uint32_t y;
  asm("max.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}
template <>
__device__ inline uint32_t larger_halves<bf16>(uint32_t a, uint32_t b) {
  uint32_t y;
  asm("max.bf16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}

/// c += a b of a warp: a is 16 x 16, b 16 x 8. Lane: g = lane / 4, t = lane % 4.
///   a[0..3]: rows g, g + 8, g, g + 8; columns 2t.. of the first, first, last, last 8
///   b[0..1]: rows 2t.. of the first and of the last 8, column g
///   c[0..3]: row g, columns 2t and 2t + 1; row g + 8, the same
template <class T>
__device__ void multiply_add(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
template <>
__device__ inline void multiply_add<f16>(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <>
__device__ inline void multiply_add<bf16>(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif

}  // namespace weft::cuda
