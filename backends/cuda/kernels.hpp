#pragma once
#include <span>
#include <vector>

#include "weft/backend.hpp"

// The kernels of this backend, a file each in kernels/.
namespace weft::cuda {

std::span<const backend::KernelRecord> softmax_rows();
std::span<const backend::KernelRecord> norm_rows();
std::span<const backend::KernelRecord> norm_grad_rows();
std::span<const backend::KernelRecord> cross_entropy_rows();
std::span<const backend::KernelRecord> scatter_add_rows();
std::span<const backend::KernelRecord> sum_columns();
std::span<const backend::KernelRecord> optimizer_pieces();
std::span<const backend::KernelRecord> gelu_elements();
std::span<const backend::KernelRecord> linear_skinny();
std::span<const backend::KernelRecord> rope_rows();
std::span<const backend::KernelRecord> ragged_cache_append_rows();
std::span<const backend::KernelRecord> ragged_attention_split();
std::span<const backend::KernelRecord> attention_flash();
std::span<const backend::KernelRecord> attention_grad_flash();

/// All of them.
inline std::span<const backend::KernelRecord> own_kernels() {
  static const auto all = [] {
    std::vector<backend::KernelRecord> records;
    for (const auto list :
         {softmax_rows(), norm_rows(), norm_grad_rows(), cross_entropy_rows(), scatter_add_rows(),
          sum_columns(), optimizer_pieces(), gelu_elements(), linear_skinny(), rope_rows(),
          ragged_cache_append_rows(), ragged_attention_split(), attention_flash(), attention_grad_flash()})
      records.insert(records.end(), list.begin(), list.end());
    return records;
  }();
  return all;
}

}  // namespace weft::cuda
