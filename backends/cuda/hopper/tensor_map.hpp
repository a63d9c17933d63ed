#pragma once
#include <cuda.h>

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

}  // namespace weft::cuda::hopper
