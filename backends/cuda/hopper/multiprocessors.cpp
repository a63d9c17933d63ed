#include "multiprocessors.hpp"

#include <cuda_runtime.h>

namespace weft::cuda::hopper {

int multiprocessors() {
  static const int found = [] {
    int devices = 0, all = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess) return 0;
    for (int d = 0; d < devices; ++d) {
      cudaDeviceProp p{};
      if (cudaGetDeviceProperties(&p, d) != cudaSuccess || p.major != 9 || p.minor != 0) return 0;
      if (all != 0 && all != p.multiProcessorCount) return 0;
      all = p.multiProcessorCount;
    }
    return all;
  }();
  return found;
}

}  // namespace weft::cuda::hopper
