#pragma once
#include "../cuda/start.hpp"

// The language of kernels (backends/cuda/kernel.hpp), for AMD's GPUs, in what clang knows without HIP's
// headers, but for how they are launched. A warp is 32 lanes here, also where the GPU runs 64 at a time:
// lanes only exchange numbers within 32.
#define threadIdx (::weft::cuda::place_of_thread())
#define blockIdx (::weft::cuda::place_of_block())
#define gridDim (::weft::cuda::size_of_grid())
#define __grid_constant__
#define __launch_bounds__(n, ...) __attribute__((amdgpu_flat_work_group_size(1, n)))

namespace weft::cuda {

__device__ inline void memcpy(void* to, const void* from, size_t n) { __builtin_memcpy(to, from, n); }

inline constexpr int kWarp = 32;
inline constexpr bool kHasMatrixUnits = false;

struct alignas(16) float4 {
  float x, y, z, w;
};

__device__ inline Grid place_of_thread() {
  return {__builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
          __builtin_amdgcn_workitem_id_z()};
}
__device__ inline Grid place_of_block() {
  return {__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
          __builtin_amdgcn_workgroup_id_z()};
}
__device__ inline Grid size_of_grid() {
  return {__builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(),
          __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(),
          __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z()};
}

__device__ inline void sync_block() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__device__ inline void sync_warp() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
inline constexpr bool kAnyShared = false;
/// There are no clusters: each is a block.
inline constexpr int kCluster = 1;
template <int>
__device__ void sync_cluster() {
  sync_block();
}
template <class T>
__device__ const T* in_block_of_cluster(const T* own, int) {
  return own;
}
template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ __attribute__((aligned(128))) char bytes[];
  return reinterpret_cast<T*>(bytes);
}

/// This lane of those that run at a time, 32 or 64.
__device__ inline unsigned own_lane() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}
/// x of lane `from` of the same 32.
template <class T>
__device__ T shuffle(T x, unsigned from) {
  static_assert(sizeof(T) % 4 == 0);
  int words[sizeof(T) / 4];
  memcpy(words, &x, sizeof x);
  const int at = static_cast<int>(((own_lane() & ~31u) | from) * 4);
  for (int& w : words) w = __builtin_amdgcn_ds_bpermute(at, w);
  memcpy(&x, words, sizeof x);
  return x;
}
template <class T>
__device__ T shuffle_xor(T x, int mask) {
  return shuffle(x, (own_lane() & 31u) ^ static_cast<unsigned>(mask));
}
/// What this thread wrote is seen by threads of other blocks before what it writes next.
__device__ inline void fence_device() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
/// What another block wrote before its fence.
__device__ inline float load_shared_by_blocks(const float* from) {
  return __hip_atomic_load(from, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
/// What a kernel before may still be writing: some value that it has had.
template <class T>
__device__ T load_early(const T* from) {
  return *static_cast<const volatile T*>(from);
}
__device__ inline void prefetch(const void*) {}
/// 16 bytes that are read once.
template <class P>
__device__ P load_streamed(const void* from) {
  using Words = __attribute__((vector_size(16))) unsigned;
  const Words w = __builtin_nontemporal_load(static_cast<const Words*>(from));
  P all;
  memcpy(&all, &w, sizeof all);
  return all;
}

/// 16 bytes that are not read soon.
template <class P>
__device__ void store_streamed(void* to, const P& all) {
  using Words = __attribute__((vector_size(16))) unsigned;
  Words w;
  memcpy(&w, &all, sizeof all);
  __builtin_nontemporal_store(w, static_cast<Words*>(to));
}

__device__ inline int atomicAdd(int* at, int x) {
  return __hip_atomic_fetch_add(at, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

__device__ inline float float_of_half(uint16_t bits) {
  _Float16 h;
  memcpy(&h, &bits, sizeof h);
  return static_cast<float>(h);
}
__device__ inline uint16_t half_of_float(float x) {
  const auto h = static_cast<_Float16>(x);
  uint16_t bits;
  memcpy(&bits, &h, sizeof bits);
  return bits;
}
__device__ inline uint16_t bfloat_of_float(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits = x != x ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
  return static_cast<uint16_t>(bits >> 16);
}
/// Two of them as the halves of a register, the first one below.
__device__ inline uint32_t halves_of_floats(float low, float high) {
  return uint32_t{half_of_float(low)} | uint32_t{half_of_float(high)} << 16;
}
__device__ inline uint32_t bfloats_of_floats(float low, float high) {
  return uint32_t{bfloat_of_float(low)} | uint32_t{bfloat_of_float(high)} << 16;
}
template <class P>
__device__ void keep_in_registers(P&) {}

/// With an error of a few units in the last place.
__device__ inline float fast_inverse_root(float x) { return __builtin_amdgcn_rsqf(x); }
__device__ inline float fast_exp(float x) { return __builtin_amdgcn_exp2f(x * 1.4426950408889634f); }

/// 16 bytes from global to shared memory. Zeros if not `read`.
__device__ inline void copy_async(void* shared, const void* global, bool read) {
  *static_cast<float4*>(shared) = read ? *static_cast<const float4*>(global) : float4{};
}
__device__ inline void end_of_copies() {}
template <int n>
__device__ void wait_for_copies() {}

__device__ inline void wait_for_kernels_before() {}
__device__ inline void let_next_kernel_start() {}

/// Four 8 x 8 matrices of 16-bit elements from shared memory: lane i points to row i % 8 of matrix i / 8, and
/// gets elements 2 * (lane % 4) and the one after it of row lane / 4 of each.
__device__ inline void load_matrices(uint32_t (&to)[4], const void* row) {
  const unsigned lane = own_lane() & 31u;
  for (unsigned m = 0; m < 4; ++m)
    memcpy(&to[m], static_cast<const char*>(shuffle(row, 8 * m + lane / 4)) + 4 * (lane % 4), 4);
}
/// The same of the transposed matrices: elements 2 * (lane % 4) and the one after it of column lane / 4.
__device__ inline void load_matrices_transposed(uint32_t (&to)[4], const void* row) {
  const unsigned lane = own_lane() & 31u;
  for (unsigned m = 0; m < 4; ++m) {
    uint16_t pair[2];
    for (unsigned i = 0; i < 2; ++i)
      memcpy(&pair[i], static_cast<const char*>(shuffle(row, 8 * m + 2 * (lane % 4) + i)) + 2 * (lane / 4),
             2);
    memcpy(&to[m], pair, 4);
  }
}

struct f16;
struct bf16;
template <class T>
__device__ float widened_bits(uint32_t pair, unsigned i) {
  return widened(T{static_cast<uint16_t>(pair >> 16 * i)});
}

/// c += a b of 32 lanes: a is 16 x 16, b 16 x 8, as the CUDA language lays them out. Right, and slow: without
/// the matrix instructions.
template <class T>
__device__ void multiply_add(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  const unsigned lane = own_lane() & 31u, g = lane / 4, t = lane % 4;
  for (unsigned from = 0; from < 4; ++from)
    for (unsigned last = 0; last < 2; ++last) {
      const uint32_t upper = shuffle(a[2 * last], 4 * g + from),
                     lower = shuffle(a[2 * last + 1], 4 * g + from);
      for (unsigned j = 0; j < 2; ++j) {
        const uint32_t with = shuffle(b[last], 4 * (2 * t + j) + from);
        for (unsigned odd = 0; odd < 2; ++odd) {
          c[j] += widened_bits<T>(upper, odd) * widened_bits<T>(with, odd);
          c[2 + j] += widened_bits<T>(lower, odd) * widened_bits<T>(with, odd);
        }
      }
    }
}

}  // namespace weft::cuda

#include "../cuda/any.hpp"
