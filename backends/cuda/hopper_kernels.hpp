#pragma once
#include <span>
#include <vector>

#include "weft/backend.hpp"

// The kernels for GPUs of architecture 9.0, a file each in kernels/hopper/. No other backend has them: what
// they are made of (hopper.hpp) has no counterpart on a CPU or on other GPUs.
namespace weft::cuda {

std::span<const backend::KernelRecord> matmul_wgmma();
std::span<const backend::KernelRecord> attention_wgmma();
std::span<const backend::KernelRecord> attention_grad_wgmma();

/// All of them; asked before the others.
inline std::span<const backend::KernelRecord> hopper_kernels() {
  static const auto all = [] {
    std::vector<backend::KernelRecord> records;
    for (const auto list : {matmul_wgmma(), attention_wgmma(), attention_grad_wgmma()})
      records.insert(records.end(), list.begin(), list.end());
    return records;
  }();
  return all;
}

}  // namespace weft::cuda
