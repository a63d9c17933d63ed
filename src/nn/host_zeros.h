#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "weft/attr.h"

namespace weft::nn {

/// Zeros for the elements of a tensor, in host memory. Raises out_of_memory with the tensor's name.
inline std::vector<std::byte> host_zeros(DType dtype, std::span<const int64_t> shape) {
  uint64_t bytes = byte_size(dtype);
  bool too_many = false;
  for (const int64_t n : shape)
    too_many = __builtin_mul_overflow(bytes, static_cast<uint64_t>(n), &bytes) || too_many;
  if (!too_many && bytes <= std::vector<std::byte>().max_size()) {
    try {
      return std::vector<std::byte>(bytes);
    } catch (const std::bad_alloc&) {
      // said below
    }
  }
  throw Error(fail(Code::out_of_memory, "host memory has no room for {}{}", name(dtype), text(shape)));
}

}  // namespace weft::nn
