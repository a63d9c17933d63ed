#pragma once
#include "seam/device.h"

namespace weft::runtime {

/// The C view of row-major memory on a device, `offset` bytes behind `data`. Points to the sizes in `type`.
inline weft_tensor c_tensor(void* data, const seam::ConcreteType& type, const seam::Device& device,
                            uint32_t layout = 0, uint64_t offset = 0) {
  const auto& dtype = info(type.dtype);
  return {.dl = {.data = data,
                 .device = device.dl(),
                 .ndim = static_cast<int32_t>(type.shape.size()),
                 .dtype = {dtype.dlpack_code, static_cast<uint8_t>(8 * dtype.bytes), 1},
                 .shape = const_cast<int64_t*>(type.shape.data()),
                 .strides = nullptr,
                 .byte_offset = offset},
          .size = sizeof(weft_tensor),
          .layout = layout,
          .logical_shape = nullptr,
          .alignment = 64,
          .binding = 0,
          .reserved = 0};
}

}  // namespace weft::runtime
