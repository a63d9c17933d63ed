#pragma once
#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
#include <hip/hip_runtime_api.h>

#define WEFT_VENDOR(name) hip##name
#include "../cuda/names.hpp"

// HIP, where its names or its ways are not CUDA's.
namespace weft::gpu {

using Properties = hipDeviceProp_t;
using Module = hipModule_t;
using Function = hipFunction_t;

inline constexpr Error kOutOfMemory = hipErrorOutOfMemory;
inline constexpr const char* kKind = "hip";
inline constexpr const char* kNativeStream = "hip.stream";
inline constexpr const char* kVendor = "HIP";
inline constexpr DLDeviceType kMemory = kDLROCM;
/// Whether kernels of a device may use such memory.
inline bool reaches(int ordinal, DLDevice there) {
  return (there.device_type == kMemory && there.device_id == ordinal) || there.device_type == kDLROCMHost;
}

/// The compiler of texts: its library, and what begins the names of its functions and the option that names
/// the GPU.
inline constexpr const char* kCompilers[] = {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so",
                                             "libamdhip64.so.5"};
inline constexpr const char *kCompilerPrefix = "hiprtc", *kCompilerCode = "Code",
                            *kTargetOption = "--offload-arch=";
inline constexpr const char* kCompilerOptions[] = {"-std=c++17", "-ffp-contract=off", "-DWEFT_HAS_FLOAT16"};
inline std::string target_of(const Properties& p) { return p.gcnArchName; }
/// Why the kernels can't run on such a device; empty if they can.
inline std::string refused(const Properties&) { return ""; }
/// Whether a kernel may start while the one before it drains.
inline bool starts_early(const Properties&) { return false; }
inline bool has_clusters(const Properties&) { return false; }
inline bool has_chains(const Properties&) { return false; }

/// "6.2", of a driver or a runtime.
inline std::string version_text(int number) {
  return std::to_string(number / 10000000) + "." + std::to_string(number / 100000 % 100);
}

inline Error allocate_host(void** at, size_t bytes) {
  return hipHostMalloc(at, bytes, hipHostMallocPortable);
}
inline Error release_host(void* at) { return hipHostFree(at); }
inline Error device_of_stream([[maybe_unused]] Stream stream, [[maybe_unused]] int* device) {
#if HIP_VERSION >= 50600000
  return hipStreamGetDevice(stream, device);
#else
  return hipErrorNotSupported;
#endif
}

/// HIP is always told which device is a thread's: it has no faster question.
using Context = void*;
inline Context current_context() { return nullptr; }

/// Gives an executable graph the parameters of another of the same form.
inline Error update(GraphExec executable, Graph graph) {
  hipGraphNode_t node = nullptr;
  hipGraphExecUpdateResult unused{};
  return hipGraphExecUpdate(executable, graph, &node, &unused);
}

/// Before a launch with more than 48 KiB of dynamic shared memory: AMD's GPUs give 64 KiB without being
/// asked.
inline Error allow_shared(const void* kernel, size_t bytes) {
  return hipFuncSetAttribute(kernel, hipFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}
inline Error clusters_at_once(int* n, const Launch&, const void*) {
  *n = 0;
  return kSuccess;
}
inline Error launch(const Launch& how, const void* kernel, void** arguments) {
  return hipLaunchKernel(kernel, dim3(how.blocks.x, how.blocks.y, how.blocks.z), dim3(how.threads), arguments,
                         how.shared, how.stream);
}
inline Error launch_function(const Launch& how, Function kernel, void** arguments) {
  return hipModuleLaunchKernel(kernel, how.blocks.x, how.blocks.y, how.blocks.z, how.threads, 1, 1,
                               static_cast<unsigned>(how.shared), how.stream, arguments, nullptr);
}
inline Error load(Module* module, const void* code) { return hipModuleLoadData(module, code); }
inline Error unload(Module module) { return hipModuleUnload(module); }
inline Error find_function(Function* function, Module module, const char* name) {
  return hipModuleGetFunction(function, module, name);
}

}  // namespace weft::gpu
