#pragma once
#include <cuda_runtime_api.h>

#include <stdexcept>

// A call of CUDA that fails is an exception: `enqueue` of flash2.h catches it.
namespace weft::mha {

inline void check(cudaError_t got) {
  if (got == cudaSuccess) return;
  cudaGetLastError();
  throw std::runtime_error(cudaGetErrorString(got));
}

}  // namespace weft::mha
