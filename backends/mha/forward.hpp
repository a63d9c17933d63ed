#pragma once
#include <flash_fwd_launch_template.h>

#include "kernel.h"

namespace weft::mha {

/// The tiles that flash-attn takes on GPUs of architectures 8.0, 9.0 and 10.0.
template <class T, int kDim, bool kCausal>
void forward(flash::Flash_fwd_params& p, cudaStream_t stream) {
  constexpr int kQueries = 128, kKeys = kDim == 64 ? 128 : 64, kWarps = 4;
  using Traits = Flash_fwd_kernel_traits<kDim, kQueries, kKeys, kWarps, false, false, T>;
  flash::run_flash_fwd<Traits, false, kCausal>(p, stream);
}

}  // namespace weft::mha
