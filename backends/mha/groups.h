#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace weft::mha {

/// Whether the current device can run the kernels of this plug-in.
bool is_compiled();

/// Heads of k and v that several query heads share get the sum of what each of these gives, in bf16. `each`
/// has `group` blocks of `block` rows for each block of `sums`; rows have `dim` numbers, a multiple of 8.
struct Groups {
  int64_t rows, block, group, dim;
};
void sum_groups(const Groups&, const void* each, void* sums, cudaStream_t);

}  // namespace weft::mha
