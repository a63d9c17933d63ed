#pragma once
#include <cuda.h>

#include "barrier.hpp"
#include "tensor_map.hpp"

// Copies of tiles between global and shared memory by the TMA unit. A CUtensorMap, made by the host
// (tensor_map.hpp), says where the tensor lies and how large a tile is; a kernel takes it as a parameter
// `const __grid_constant__ CUtensorMap`. One thread starts a copy. Coordinates are of elements, the innermost
// axis first. What of a tile lies outside of the tensor is read as 0 and not written.
namespace weft::cuda::hopper {

/// Tiles are swizzled by 128 bytes: a row of a tile has 128 bytes, and of 8 neighbouring rows, row r has its
/// 16-byte piece i at place i ^ r % 8. Such a tile begins at a multiple of 1024 bytes.
inline constexpr uint32_t kSwizzledRow = 128, kTileAlignment = 1024;
__device__ inline uint32_t swizzled(uint32_t row, uint32_t piece) {
  return row * kSwizzledRow + ((piece ^ (row & 7)) << 4);
}

__device__ inline void prefetch(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// A tile to shared memory; its bytes count at the barrier.
__device__ inline void load_tile(void* to, const CUtensorMap& map, Barrier& barrier, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&barrier)), "r"(x), "r"(y)
      : "memory");
}
__device__ inline void load_tile(void* to, const CUtensorMap& map, Barrier& barrier, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&barrier)), "r"(x), "r"(y), "r"(z)
      : "memory");
}
__device__ inline void load_tile(void* to, const CUtensorMap& map, Barrier& barrier, int x, int y, int z,
                                 int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

/// A tile from shared memory to a tensor. The threads that wrote it have called show_shared_writes, and
/// synced.
__device__ inline void store_tile(const StoreMap& to, const void* from, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&to.map),
               "r"(shared_address(from)), "r"(x), "r"(y)
               : "memory");
}
__device__ inline void store_tile(const StoreMap& to, const void* from, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&to.map),
      "r"(shared_address(from)), "r"(x), "r"(y), "r"(z)
      : "memory");
}
__device__ inline void store_tile(const StoreMap& to, const void* from, int x, int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&to.map),
      "r"(shared_address(from)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}
/// Ends a group of this thread's stores.
__device__ inline void end_of_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Waits until all but the last n groups have read their shared memory, which may be written again.
template <int n>
__device__ void wait_until_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(n) : "memory");
}
/// Waits until all but the last n groups have written their global memory.
template <int n>
__device__ void wait_until_stored() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(n) : "memory");
}

/// Four 8 x 8 matrices of 16-bit elements to shared memory: what load_matrices (language.hpp) reads.
__device__ inline void store_matrices(void* row, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

}  // namespace weft::cuda::hopper
