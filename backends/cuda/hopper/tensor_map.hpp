#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <span>

#include "weft/backend.hpp"

// Maps of tensors for the TMA unit, made by the host. The driver's function is asked of the runtime, so that
// nothing is linked to the driver.
namespace weft::cuda::hopper {

/// A tensor of f32 or of floats of 16 or 8 bits, the innermost axis first, and the tile that one copy moves.
/// The innermost axis has no gaps, and `strides` begins with that of the second one, in elements.
template <int kRank>
struct TensorLayout {
  std::array<int64_t, kRank> sizes{};
  std::array<int64_t, kRank - 1> strides{};
  std::array<int, kRank> tile{};  ///< 128 bytes of the innermost; at most 256 of others
};

/// For tiles that are swizzled by 128 bytes. Fails where the address or a stride is no multiple of 16 bytes.
backend::Outcome make_tensor_map(CUtensorMap* map, DType, const void* address, std::span<const int64_t> sizes,
                                 std::span<const int64_t> strides, std::span<const int> tile);

template <int kRank>
backend::Outcome make_tensor_map(CUtensorMap* map, DType dtype, const void* address,
                                 const TensorLayout<kRank>& l) {
  return make_tensor_map(map, dtype, address, l.sizes, l.strides, l.tile);
}

/// The map of a tensor that a kernel stores tiles to (tensor_copy.hpp), by make_store_map alone.
struct StoreMap {
  CUtensorMap map;
};

/// The initcheck of compute-sanitizer before 2025.4 (CUDA 13.1) doesn't see bulk copies to global memory, and
/// calls what they wrote uninitialized. Where WEFT_GPU_SHOW_STORES=1 the tensor is first filled with NaNs by
/// the driver, on the stream, which it does see; so a kernel that stores too little is still found by its
/// results, and whoever reads any other memory that nobody wrote is still named.
backend::Outcome show_stores(cudaStream_t stream, DType, const void* address, std::span<const int64_t> sizes,
                             std::span<const int64_t> strides);

template <int kRank>
backend::Outcome make_store_map(StoreMap* map, cudaStream_t stream, DType dtype, const void* address,
                                const TensorLayout<kRank>& l) {
  if (auto shown = show_stores(stream, dtype, address, l.sizes, l.strides); !shown.good()) return shown;
  return make_tensor_map(&map->map, dtype, address, l);
}

}  // namespace weft::cuda::hopper
