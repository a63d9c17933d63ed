#include <nv/target>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

// What the memory of a GPU gives to kernels that only read, and to copies: what products of few rows are
// compared with. Each launch has memory of its own, of 1 GiB in all, more than the caches hold.
//
//   read        a line of JSON for each size of a launch: gigabytes a second, the best of some ways to read,
//               where launches wait for each other and where each may start with the one before it
namespace {

void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "read: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
#define REQUIRE(call) require((call), #call)

constexpr size_t kAll = size_t{1} << 30;
constexpr int kThreads = 512, kRounds = 11;

/// Each thread has kAtOnce pieces of 16 bytes on their way. `to` is written if their sum of bits is
/// `unlikely`, so that they are read.
template <int kAtOnce>
__global__ void __launch_bounds__(kThreads)
    read_once(const uint4* from, size_t pieces, uint32_t unlikely, uint32_t* to) {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (cudaTriggerProgrammaticLaunchCompletion();))
  const size_t stride = size_t{gridDim.x} * kThreads;
  uint32_t bits = 0;
  for (size_t at = size_t{blockIdx.x} * kThreads + threadIdx.x; at < pieces; at += kAtOnce * stride) {
    uint4 kept[kAtOnce]{};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (at + i * stride < pieces) kept[i] = __ldcs(from + at + i * stride);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) bits ^= kept[i].x ^ kept[i].y ^ kept[i].z ^ kept[i].w;
  }
  if (bits == unlikely) *to = bits;
}

/// Bits of a hash of the index.
__global__ void fill(uint32_t* to, size_t n) {
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x)
    to[i] = static_cast<uint32_t>((i + 1) * 0x9e3779b97f4a7c15u >> 32);
}

/// Median seconds of a graph of what `enqueue` puts into a stream.
double seconds(cudaStream_t stream, const std::function<void()>& enqueue) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  enqueue();
  REQUIRE(cudaGetLastError());  // of launches, which tell nothing themselves
  REQUIRE(cudaStreamEndCapture(stream, &graph));
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0));
  cudaEvent_t begin, end;
  REQUIRE(cudaEventCreate(&begin));
  REQUIRE(cudaEventCreate(&end));
  std::vector<float> times;
  for (int round = 0; round <= kRounds; ++round) {
    float milliseconds = 0;
    REQUIRE(cudaEventRecord(begin, stream));
    REQUIRE(cudaGraphLaunch(exec, stream));
    REQUIRE(cudaEventRecord(end, stream));
    REQUIRE(cudaEventSynchronize(end));
    REQUIRE(cudaEventElapsedTime(&milliseconds, begin, end));
    if (round > 0) times.push_back(milliseconds / 1e3f);  // the first one warms up
  }
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  cudaGraphExecDestroy(exec), cudaGraphDestroy(graph), cudaEventDestroy(begin), cudaEventDestroy(end);
  return times[kRounds / 2];
}

}  // namespace

int main() {
  cudaStream_t stream;
  char* memory;
  uint32_t* result;
  int multiprocessors = 0;
  REQUIRE(cudaStreamCreate(&stream));
  REQUIRE(cudaMalloc(&memory, kAll));
  REQUIRE(cudaMalloc(&result, sizeof *result));
  REQUIRE(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  fill<<<multiprocessors * 4, kThreads, 0, stream>>>(reinterpret_cast<uint32_t*>(memory),
                                                     kAll / sizeof(uint32_t));
  REQUIRE(cudaGetLastError());
  for (const size_t megabytes : {8, 32, 96, 128}) {
    const size_t bytes = megabytes << 20, launches = kAll / bytes;
    const auto rate = [&](int blocks, bool overlap, auto kernel) {
      cudaLaunchAttribute starts_early{};
      starts_early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      starts_early.val.programmaticStreamSerializationAllowed = 1;
      cudaLaunchConfig_t config{};
      config.gridDim = dim3(static_cast<unsigned>(multiprocessors * blocks));
      config.blockDim = dim3(kThreads);
      config.stream = stream;
      config.attrs = &starts_early;
      config.numAttrs = overlap ? 1 : 0;
      return static_cast<double>(launches * bytes) / seconds(stream, [&] {
               for (size_t i = 0; i < launches; ++i)
                 REQUIRE(cudaLaunchKernelEx(&config, kernel,
                                            reinterpret_cast<const uint4*>(memory + i * bytes),
                                            bytes / sizeof(uint4), 1u, result));
             });
    };
    const auto best = [&](bool overlap) {
      double most = 0;
      for (const int blocks : {1, 2, 4})
        for (const double one : {rate(blocks, overlap, read_once<4>), rate(blocks, overlap, read_once<8>),
                                 rate(blocks, overlap, read_once<16>)})
          most = std::max(most, one);
      return most / 1e9;
    };
    const size_t copies = launches / 2;
    const double copied = 2 * static_cast<double>(copies * bytes) / seconds(stream, [&] {
                            for (size_t i = 0; i < copies; ++i)
                              REQUIRE(cudaMemcpyAsync(memory + (copies + i) * bytes, memory + i * bytes,
                                                      bytes, cudaMemcpyDeviceToDevice, stream));
                          });
    std::printf(
        "{\"limit\": \"launches of %zu MiB\", \"read_gigabytes_per_second\": %.0f, "
        "\"overlapped_gigabytes_per_second\": %.0f, \"copied_gigabytes_per_second\": %.0f}\n",
        megabytes, best(false), best(true), copied / 1e9);
  }
}
