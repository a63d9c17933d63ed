#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

#define WEFT_VENDOR(name) cuda##name
#include "names.hpp"

// CUDA, where its names or its ways are not HIP's.
namespace weft::gpu {

using Properties = cudaDeviceProp;
using Module = cudaLibrary_t;
using Function = cudaKernel_t;

inline constexpr Error kOutOfMemory = cudaErrorMemoryAllocation;
inline constexpr const char* kKind = "cuda";
inline constexpr const char* kNativeStream = "cuda.stream";
inline constexpr const char* kVendor = "CUDA";
inline constexpr DLDeviceType kMemory = kDLCUDA;
/// Whether kernels of a device may use such memory.
inline bool reaches(int ordinal, DLDevice there) {
  return (there.device_type == kMemory && there.device_id == ordinal) || there.device_type == kDLCUDAHost ||
         there.device_type == kDLCUDAManaged;
}

/// The compiler of texts: its library, and what begins the names of its functions and the option that names
/// the GPU.
inline constexpr const char* kCompilers[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
inline constexpr const char *kCompilerPrefix = "nvrtc", *kCompilerCode = "CUBIN",
                            *kTargetOption = "--gpu-architecture=";
inline constexpr const char* kCompilerOptions[] = {"--std=c++17", "--fmad=false", "--minimal"};
inline std::string target_of(const Properties& p) { return "sm_" + std::to_string(10 * p.major + p.minor); }
/// Why the kernels can't run on such a device; empty if they can.
inline std::string refused(const Properties& p) {
  return p.major >= 8 ? "" : "its architecture is " + target_of(p) + "; the kernels want sm_80 or later";
}
/// Whether a kernel may start while the one before it drains.
inline bool starts_early(const Properties& p) { return p.major >= 9; }
inline bool has_clusters(const Properties& p) { return p.major >= 9; }
inline bool has_chains(const Properties& p) { return p.major == 9 && p.minor == 0; }

/// "13.0", of a driver or a runtime.
inline std::string version_text(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

inline Error allocate_host(void** at, size_t bytes) {
  return cudaHostAlloc(at, bytes, cudaHostAllocPortable);
}
inline Error release_host(void* at) { return cudaFreeHost(at); }
inline Error device_of_stream(Stream stream, int* device) { return cudaStreamGetDevice(stream, device); }

/// The driver's own functions, which are asked of the runtime, so that nothing is linked to the driver; null
/// where a driver has none of that name.
template <class F>
F of_driver(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  const Error error = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
#else
  const Error error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
  if (error != kSuccess || result != cudaDriverEntryPointSuccess) found = nullptr;
  return reinterpret_cast<F>(found);
}

/// What makes a device the current one of a thread.
using Context = CUcontext;
/// This thread's; null where there is none, or it can't be told.
inline Context current_context() {
  static const auto ask = of_driver<decltype(&cuCtxGetCurrent)>("cuCtxGetCurrent");
  Context current = nullptr;
  return ask && ask(&current) == CUDA_SUCCESS ? current : nullptr;
}

/// Gives an executable graph the parameters of another of the same form.
inline Error update(GraphExec executable, Graph graph) {
  cudaGraphExecUpdateResultInfo unused{};
  return cudaGraphExecUpdate(executable, graph, &unused);
}

/// Before a launch with more than 48 KiB of dynamic shared memory.
inline Error allow_shared(const void* kernel, size_t bytes) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}
/// How many clusters of such a launch run at the same time, if nothing else does.
inline Error clusters_at_once(int* n, const Launch& how, const void* kernel) {
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {how.cluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = {how.blocks.x, how.blocks.y, how.blocks.z};
  config.blockDim = how.threads;
  config.dynamicSmemBytes = how.shared;
  config.attrs = &cluster;
  config.numAttrs = 1;
  return cudaOccupancyMaxActiveClusters(n, kernel, &config);
}
inline Error launch(const Launch& how, const void* kernel, void** arguments) {
  cudaLaunchAttribute attributes[3] = {};
  unsigned n = 0;
  if (how.early) {
    attributes[n].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[n++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (how.cluster > 1) {
    attributes[n].id = cudaLaunchAttributeClusterDimension;
    attributes[n++].val.clusterDim = {how.cluster, 1, 1};
  }
  if (how.together) {
    attributes[n].id = cudaLaunchAttributeCooperative;
    attributes[n++].val.cooperative = 1;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = {how.blocks.x, how.blocks.y, how.blocks.z};
  config.blockDim = how.threads;
  config.dynamicSmemBytes = how.shared;
  config.stream = how.stream;
  config.attrs = attributes;
  config.numAttrs = n;
  return cudaLaunchKernelExC(&config, kernel, arguments);
}
/// A function of a text, which has no clusters. The driver takes it as it is, where the runtime would look it
/// up; their numbers of errors are the same.
inline Error launch_function(const Launch& how, Function kernel, void** arguments) {
  static const auto by_driver = of_driver<decltype(&cuLaunchKernelEx)>("cuLaunchKernelEx");
  if (!by_driver) return launch(how, reinterpret_cast<const void*>(kernel), arguments);
  CUlaunchAttribute early{};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  const CUlaunchConfig config = {.gridDimX = how.blocks.x,
                                 .gridDimY = how.blocks.y,
                                 .gridDimZ = how.blocks.z,
                                 .blockDimX = how.threads,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .sharedMemBytes = static_cast<unsigned>(how.shared),
                                 .hStream = how.stream,
                                 .attrs = &early,
                                 .numAttrs = how.early ? 1u : 0u};
  return static_cast<Error>(by_driver(&config, reinterpret_cast<CUfunction>(kernel), arguments, nullptr));
}
inline Error load(Module* module, const void* code) {
  return cudaLibraryLoadData(module, code, nullptr, nullptr, 0, nullptr, nullptr, 0);
}
inline Error unload(Module module) { return cudaLibraryUnload(module); }
inline Error find_function(Function* function, Module module, const char* name) {
  return cudaLibraryGetKernel(function, module, name);
}

}  // namespace weft::gpu
