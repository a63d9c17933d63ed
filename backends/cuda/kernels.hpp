#pragma once
#include <span>

#include "weft/backend.hpp"

// The kernels of this backend, a file each in kernels/.
namespace weft::cuda {

std::span<const backend::KernelRecord> softmax_rows();
std::span<const backend::KernelRecord> attention_flash();
std::span<const backend::KernelRecord> attention_grad_flash();

}  // namespace weft::cuda
