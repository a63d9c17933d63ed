#pragma once
#include <initializer_list>
#include <span>
#include <vector>

#include "weft/backend.hpp"

// The kernels of this backend: kernels.cmake makes these functions from the files in kernels/.
namespace weft::cuda {

std::span<const backend::KernelRecord> own_kernels();

/// Those of kernels/hopper, for GPUs of architecture 9.0, which are asked before the others. What they are
/// made of (hopper.hpp) has no counterpart on a CPU or on other GPUs: backends for those have none.
std::span<const backend::KernelRecord> hopper_kernels();

inline std::vector<backend::KernelRecord> joined(
    std::initializer_list<std::span<const backend::KernelRecord>> lists) {
  std::vector<backend::KernelRecord> records;
  for (const auto list : lists) records.insert(records.end(), list.begin(), list.end());
  return records;
}

}  // namespace weft::cuda
