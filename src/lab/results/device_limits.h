#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/kernels/operation.h"
#include "seam/device.h"

namespace weft::lab {

/// The limits of a device with memory of its own.
struct DeviceLimits {
  double copy = 0;       ///< gigabytes a second within its memory, read and written
  double gigaflops = 0;  ///< of f32 multiply-adds in registers; 0: not measured
  /// Gflop/s of a product of 4096 rows by the device's own kernel, by dtype: more than `gigaflops` where it
  /// has units for products.
  std::map<std::string, double> products;

  /// The most that any kernel of this dtype can reach, as far as it was measured; 0: unknown.
  double peak(DType dtype) const;
};
/// In some tenths of a second, with products of those of the dtypes that are no wider than 16 bits. Empty
/// where the device has no clock, or fails.
std::optional<DeviceLimits> measure_limits(seam::Device& device, const std::vector<DType>& dtypes);

}  // namespace weft::lab
