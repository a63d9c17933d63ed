#include <cstdio>
#include <cstdlib>
#include <string_view>

// One fault for each tool of compute-sanitizer, which the tool must report: where it doesn't, its silence
// about Weft's kernels says nothing (scripts/gpu memory).
//
//   planted memcheck|racecheck|initcheck|synccheck
namespace {

constexpr int kThreads = 128, kWarp = 32;

/// The last thread writes behind the end.
__global__ void write_behind(float* to) { to[threadIdx.x] = 1; }

/// Another warp's element, without a barrier in between.
__global__ void read_without_barrier(float* to) {
  __shared__ float all[kThreads];
  all[threadIdx.x] = static_cast<float>(threadIdx.x);
  to[threadIdx.x] = all[(threadIdx.x + kWarp) % kThreads];
}

__global__ void add(const float* from, float* to) { to[threadIdx.x] += from[threadIdx.x]; }

/// Of a warp, a lane that the mask leaves out waits, too.
__global__ void wait_beside_mask(float* to) {
  const unsigned mask = __ballot_sync(0xffffffffu, threadIdx.x < kWarp / 2);
  if (threadIdx.x <= kWarp / 2) {
    to[threadIdx.x] = 1;
    __syncwarp(mask);
  }
}

float* allocate(int n = kThreads) {
  float* at = nullptr;
  if (cudaMalloc(reinterpret_cast<void**>(&at), static_cast<size_t>(n) * sizeof(float)) == cudaSuccess)
    return at;
  std::fprintf(stderr, "planted: no memory on the device\n");
  std::exit(2);
}

}  // namespace

int main(int count, char** words) {
  const std::string_view tool = count == 2 ? words[1] : "";
  float *const to = allocate(), *const never_written = allocate();
  cudaMemset(to, 0xff, kThreads * sizeof(float));  // as WEFT_GPU_SHOW_STORES=1 does
  if (tool == "memcheck")  // memory is given in pieces of 512 bytes: behind a full one lies the next
    write_behind<<<1, kThreads>>>(allocate(kThreads - 1));
  else if (tool == "racecheck")
    read_without_barrier<<<1, kThreads>>>(to);
  else if (tool == "initcheck")
    add<<<1, kThreads>>>(never_written, to);
  else if (tool == "synccheck")
    wait_beside_mask<<<1, kWarp>>>(to);
  else
    return std::fprintf(stderr, "planted: memcheck, racecheck, initcheck or synccheck\n"), 2;
  const cudaError_t ended = cudaDeviceSynchronize();
  std::printf("%s: %s\n", words[1], cudaGetErrorString(ended));
  return 0;
}
