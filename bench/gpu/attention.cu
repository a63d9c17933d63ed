#include "attention/gradients.hpp"

// Attention for warpgroups by itself: its answers beside those of plain kernels in f64, and its speed.
//   nvcc -std=c++20 -O3 -gencode arch=compute_90a,code=sm_90a -I SDK/include
//     bench/gpu/attention.cu backends/cuda/hopper/tensor_map.cpp -o attention
//   ./attention [check|measure|check_gradients|measure_gradients]
int main(int argc, char** argv) {
  using namespace weft::cuda::hopper;
  cudaDeviceProp properties;
  TRY(cudaGetDeviceProperties(&properties, 0));
  block_count = properties.multiProcessorCount;
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  if (argc < 2 || argv[1] == std::string("check")) check_all();
  if (argc < 2 || argv[1] == std::string("measure")) measure_all();
  if (argc < 2 || argv[1] == std::string("check_gradients")) check_all_gradients();
  if (argc < 2 || argv[1] == std::string("measure_gradients")) measure_all_gradients();
}
