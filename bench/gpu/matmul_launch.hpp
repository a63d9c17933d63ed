#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "weft/backend.hpp"

// What the measurements of products share: numbers, launches, and times.

inline void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
#define REQUIRE(call) require((call), #call)

/// Normal numbers from a hash of the index.
__device__ inline float normal_at(uint64_t i, uint32_t seed) {
  uint64_t x = i * 0x9e3779b97f4a7c15u + seed * 0xd1b54a32d192ed03u + 1;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u, x = (x ^ (x >> 27)) * 0x94d049bb133111ebu, x ^= x >> 31;
  const float u = (static_cast<float>(x >> 40) + 1) * 0x1p-24f,
              v = static_cast<float>(x & 0xffffff) * 0x1p-24f;
  return sqrtf(-2 * logf(u)) * cosf(6.2831853f * v);
}

inline int multiprocessors() {
  static const int count = [] {
    int n = 0;
    REQUIRE(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0));
    return n;
  }();
  return count;
}

/// Launches as the backend does: a kernel may start while the one before it drains.
struct Starter {
  cudaStream_t stream = nullptr;

  template <class... P, class... A>
  weft::backend::Outcome operator()(unsigned blocks, unsigned threads, uint32_t shared, void (*kernel)(P...),
                                    const A&... arguments) const {
    REQUIRE(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = blocks, config.blockDim = threads, config.dynamicSmemBytes = shared,
    config.stream = stream;
    config.attrs = &early, config.numAttrs = 1;
    REQUIRE(cudaLaunchKernelEx(&config, kernel, static_cast<P>(arguments)...));
    return weft::backend::Outcome::ok();
  }
};

/// The median milliseconds of each of these, of some launches in a row; all in turns, so that they share the
/// GPU's temperature.
inline std::vector<double> medians_ms(
    const std::vector<std::function<weft::backend::Outcome(cudaStream_t)>>& all, int launches, int rounds) {
  cudaEvent_t begin, end;
  REQUIRE(cudaEventCreate(&begin));
  REQUIRE(cudaEventCreate(&end));
  std::vector<std::vector<float>> times(all.size());
  for (int round = -1; round < rounds; ++round)
    for (size_t i = 0; i < all.size(); ++i) {
      REQUIRE(cudaEventRecord(begin));
      for (int n = 0; n < launches; ++n)
        if (const auto ran = all[i](nullptr); !ran.good()) std::printf("%zu: %s\n", i, ran.text.c_str());
      REQUIRE(cudaEventRecord(end));
      REQUIRE(cudaEventSynchronize(end));
      float ms = 0;
      REQUIRE(cudaEventElapsedTime(&ms, begin, end));
      if (round >= 0) times[i].push_back(ms / static_cast<float>(launches));
    }
  cudaEventDestroy(begin), cudaEventDestroy(end);
  std::vector<double> medians;
  for (auto& t : times) {
    std::ranges::sort(t);
    medians.push_back(t[t.size() / 2]);
  }
  return medians;
}
