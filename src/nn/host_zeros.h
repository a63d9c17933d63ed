#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "weft/attr.h"

namespace weft::nn {

/// The elements of a tensor, all zero, in host memory. Raises out_of_memory, which names the tensor.
inline std::vector<std::byte> host_zeros(DType dtype, std::span<const int64_t> shape) {
  const auto bytes = static_cast<uint64_t>(element_count(shape)) * byte_size(dtype);
  try {
    return std::vector<std::byte>(bytes);
  } catch (const std::bad_alloc&) {
    throw Error(fail(Code::out_of_memory, "no {} bytes of host memory are left for {}{}", bytes, name(dtype),
                     text(shape)));
  }
}

}  // namespace weft::nn
