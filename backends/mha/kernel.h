#pragma once
#include <cuda_runtime_api.h>
#include <cutlass/numeric_types.h>
#include <flash.h>

// The kernels of flash-attn: each call here is compiled for itself, since that takes a minute or more. The
// files that do so are made by CMakeLists.txt.
namespace weft::mha {

template <class T, int kDim, bool kCausal>
void forward(flash::Flash_fwd_params&, cudaStream_t);
template <class T, int kDim, bool kCausal>
void backward(flash::Flash_bwd_params&, cudaStream_t);

}  // namespace weft::mha
