#include "tensor_map.hpp"

#include <cstdlib>
#include <string_view>

#include "../gpu.hpp"

namespace weft::cuda::hopper {

using backend::Outcome;

namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

Encode encoder() {
  static const Encode function = gpu::of_driver<Encode>("cuTensorMapEncodeTiled");
  return function;
}

constexpr size_t kMostAxes = 5;  // of a map

CUtensorMapDataType type_of(DType t) {
  switch (t) {
    case DType::f32: return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::bf16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::f8e4m3:
    case DType::f8e5m2: return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    default: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  }
}

}  // namespace

Outcome make_tensor_map(CUtensorMap* map, DType dtype, const void* address, std::span<const int64_t> sizes,
                        std::span<const int64_t> strides, std::span<const int> tile) {
  const Encode encode = encoder();
  if (!encode) return Outcome::fail(WEFT_UNAVAILABLE, "the driver has no cuTensorMapEncodeTiled");
  const size_t rank = sizes.size();
  if (rank < 2 || rank > kMostAxes || strides.size() != rank - 1 || tile.size() != rank)
    return Outcome::fail(WEFT_INVALID_ARGUMENT, "a tensor map of {} axes, {} strides and {} sizes of a tile",
                         rank, strides.size(), tile.size());
  std::array<cuuint64_t, kMostAxes> size{}, stride{};
  std::array<cuuint32_t, kMostAxes> box{}, step{};
  for (size_t i = 0; i < rank; ++i) {
    size[i] = static_cast<cuuint64_t>(sizes[i]);
    box[i] = static_cast<cuuint32_t>(tile[i]), step[i] = 1;
    if (i > 0) stride[i - 1] = static_cast<cuuint64_t>(strides[i - 1]) * byte_size(dtype);
  }
  // The second cache reads 128 bytes at a time: with 256, what is read once comes 4 % slower, products
  // and attention no faster.
  const CUresult made = encode(map, type_of(dtype), static_cast<cuuint32_t>(rank), const_cast<void*>(address),
                               size.data(), stride.data(), box.data(), step.data(),
                               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                               CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (made == CUDA_SUCCESS) return Outcome::ok();
  return Outcome::fail(WEFT_INVALID_ARGUMENT, "cuTensorMapEncodeTiled: error {} for {} at {}, strides {}",
                       static_cast<int>(made), sizes, reinterpret_cast<uintptr_t>(address), strides);
}

Outcome show_stores(cudaStream_t stream, DType dtype, const void* address, std::span<const int64_t> sizes,
                    std::span<const int64_t> strides) {
  static const bool wanted = [] {
    const char* text = std::getenv("WEFT_GPU_SHOW_STORES");
    return text && std::string_view(text) != "0";
  }();
  if (!wanted) return Outcome::ok();
  int64_t elements = sizes[0], extent = sizes[0];
  for (size_t i = 1; i < sizes.size(); ++i) elements *= sizes[i], extent += (sizes[i] - 1) * strides[i - 1];
  if (elements != extent)  // what lies between belongs to others
    return Outcome::fail(WEFT_UNSUPPORTED, "WEFT_GPU_SHOW_STORES: a result of {}, strides {}, has gaps",
                         sizes, strides);
  const auto bytes = static_cast<size_t>(elements) * byte_size(dtype);
  const cudaError_t filled = cudaMemsetAsync(const_cast<void*>(address), 0xff, bytes, stream);
  if (filled == cudaSuccess) return Outcome::ok();
  return Outcome::fail(WEFT_DEVICE, "filling {} bytes for WEFT_GPU_SHOW_STORES: {}", bytes,
                       cudaGetErrorString(filled));
}

}  // namespace weft::cuda::hopper
