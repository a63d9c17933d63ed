#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

// HIP's names for CUDA's runtime: those that backends/hip uses. With this folder before HIP's own headers,
// the HIP backend is built by nvcc and runs on an NVIDIA GPU, for tests.
#define HIP_VERSION 60000000

#define hipError_t cudaError_t
#define hipSuccess cudaSuccess
#define hipErrorNotReady cudaErrorNotReady
#define hipErrorOutOfMemory cudaErrorMemoryAllocation
#define hipErrorNotSupported cudaErrorNotSupported
#define hipErrorPeerAccessAlreadyEnabled cudaErrorPeerAccessAlreadyEnabled
#define hipGetErrorString cudaGetErrorString
#define hipGetLastError cudaGetLastError
#define hipDriverGetVersion cudaDriverGetVersion
#define hipRuntimeGetVersion cudaRuntimeGetVersion

#define hipGetDeviceCount cudaGetDeviceCount
#define hipSetDevice cudaSetDevice
#define hipDeviceCanAccessPeer cudaDeviceCanAccessPeer
#define hipDeviceEnablePeerAccess cudaDeviceEnablePeerAccess

#define hipMemGetInfo cudaMemGetInfo
#define hipMalloc cudaMalloc
#define hipFree cudaFree
#define hipHostMalloc cudaHostAlloc
#define hipHostMallocPortable cudaHostAllocPortable
#define hipHostFree cudaFreeHost
#define hipMemcpyAsync cudaMemcpyAsync
#define hipMemcpyDefault cudaMemcpyDefault

#define hipStream_t cudaStream_t
#define hipStreamNonBlocking cudaStreamNonBlocking
#define hipStreamCreateWithFlags cudaStreamCreateWithFlags
#define hipStreamDestroy cudaStreamDestroy
#define hipStreamSynchronize cudaStreamSynchronize
#define hipStreamQuery cudaStreamQuery
#define hipStreamGetDevice cudaStreamGetDevice
#define hipStreamWaitEvent cudaStreamWaitEvent
#define hipEvent_t cudaEvent_t
#define hipEventDefault cudaEventDefault
#define hipEventElapsedTime cudaEventElapsedTime
#define hipEventDisableTiming cudaEventDisableTiming
#define hipEventCreateWithFlags cudaEventCreateWithFlags
#define hipEventDestroy cudaEventDestroy
#define hipEventRecord cudaEventRecord
#define hipEventQuery cudaEventQuery

#define hipGraph_t cudaGraph_t
#define hipGraphExec_t cudaGraphExec_t
#define hipGraphNode_t cudaGraphNode_t
#define hipGraphExecUpdateResult cudaGraphExecUpdateResult
#define hipStreamCaptureModeThreadLocal cudaStreamCaptureModeThreadLocal
#define hipStreamBeginCapture cudaStreamBeginCapture
#define hipStreamEndCapture cudaStreamEndCapture
#define hipGraphInstantiateWithFlags cudaGraphInstantiateWithFlags
#define hipGraphLaunch cudaGraphLaunch
#define hipGraphDestroy cudaGraphDestroy
#define hipGraphExecDestroy cudaGraphExecDestroy

#define hipFuncAttributeMaxDynamicSharedMemorySize cudaFuncAttributeMaxDynamicSharedMemorySize
#define hipFuncSetAttribute cudaFuncSetAttribute
#define hipLaunchKernel cudaLaunchKernel

#define hipModule_t cudaLibrary_t
#define hipFunction_t cudaKernel_t
#define hipModuleUnload cudaLibraryUnload
#define hipModuleGetFunction cudaLibraryGetKernel

struct hipDeviceProp_t : cudaDeviceProp {
  char gcnArchName[256];
};

inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* p, int device) {
  const hipError_t got = cudaGetDeviceProperties(p, device);
  std::snprintf(p->gcnArchName, sizeof p->gcnArchName, "sm_%d%d", p->major, p->minor);
  return got;
}

inline hipError_t hipGraphExecUpdate(hipGraphExec_t executable, hipGraph_t graph, hipGraphNode_t*,
                                     hipGraphExecUpdateResult*) {
  cudaGraphExecUpdateResultInfo unused{};
  return cudaGraphExecUpdate(executable, graph, &unused);
}

inline hipError_t hipModuleLoadData(hipModule_t* module, const void* code) {
  return cudaLibraryLoadData(module, code, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

inline hipError_t hipModuleLaunchKernel(hipFunction_t kernel, unsigned x, unsigned y, unsigned z,
                                        unsigned threads_x, unsigned threads_y, unsigned threads_z,
                                        unsigned shared, hipStream_t stream, void** arguments, void**) {
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(x, y, z),
                          dim3(threads_x, threads_y, threads_z), arguments, shared, stream);
}
