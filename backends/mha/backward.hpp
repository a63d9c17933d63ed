#pragma once
#include <flash_bwd_launch_template.h>

#include "kernel.h"

namespace weft::mha {

/// The tiles that flash-attn takes on GPUs whose blocks have 144 KB of shared memory.
template <class T, int kDim, bool kCausal>
void backward(flash::Flash_bwd_params& p, cudaStream_t stream) {
  constexpr int kKeys = 128, kWarps = 8;
  using Traits =
      std::conditional_t<kDim == 64,
                         Flash_bwd_kernel_traits<kDim, 128, kKeys, kWarps, 4, 4, 4, false, false, T>,
                         Flash_bwd_kernel_traits<kDim, 64, kKeys, kWarps, 2, 4, 2, false, false, T>>;
  flash::run_flash_bwd<Traits, false, kCausal>(p, stream);
}

}  // namespace weft::mha
