#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "weft/backend.h"

// What CUDA's runtime and HIP's have in common: their names differ in the first letters, which WEFT_VENDOR
// puts before a name. What differs in more than that is in vendor.hpp of each.
namespace weft::gpu {

using Error = WEFT_VENDOR(Error_t);
using Stream = WEFT_VENDOR(Stream_t);
using Event = WEFT_VENDOR(Event_t);
using Graph = WEFT_VENDOR(Graph_t);
using GraphExec = WEFT_VENDOR(GraphExec_t);

inline constexpr Error kSuccess = WEFT_VENDOR(Success), kNotReady = WEFT_VENDOR(ErrorNotReady),
                       kPeerKnown = WEFT_VENDOR(ErrorPeerAccessAlreadyEnabled);
inline constexpr auto kCopyByAddress = WEFT_VENDOR(MemcpyDefault);
inline constexpr auto kCaptureOfThread = WEFT_VENDOR(StreamCaptureModeThreadLocal);
inline constexpr unsigned kUnordered = WEFT_VENDOR(StreamNonBlocking),
                          kWithoutTime = WEFT_VENDOR(EventDisableTiming),
                          kWithTime = WEFT_VENDOR(EventDefault);

#define WEFT_GPU_FUNCTIONS(X)                     \
  X(get_error_string, GetErrorString)             \
  X(get_last_error, GetLastError)                 \
  X(driver_version, DriverGetVersion)             \
  X(runtime_version, RuntimeGetVersion)           \
  X(device_count, GetDeviceCount)                 \
  X(properties, GetDeviceProperties)              \
  X(set_device, SetDevice)                        \
  X(can_access_peer, DeviceCanAccessPeer)         \
  X(enable_peer, DeviceEnablePeerAccess)          \
  X(memory_info, MemGetInfo)                      \
  X(allocate, Malloc)                             \
  X(release, Free)                                \
  X(copy_async, MemcpyAsync)                      \
  X(create_stream, StreamCreateWithFlags)         \
  X(destroy_stream, StreamDestroy)                \
  X(synchronize_stream, StreamSynchronize)        \
  X(query_stream, StreamQuery)                    \
  X(wait_for_event, StreamWaitEvent)              \
  X(create_event, EventCreateWithFlags)           \
  X(destroy_event, EventDestroy)                  \
  X(record_event, EventRecord)                    \
  X(query_event, EventQuery)                      \
  X(milliseconds_between, EventElapsedTime)       \
  X(begin_capture, StreamBeginCapture)            \
  X(end_capture, StreamEndCapture)                \
  X(destroy_graph, GraphDestroy)                  \
  X(instantiate_graph, GraphInstantiateWithFlags) \
  X(launch_graph, GraphLaunch)                    \
  X(destroy_executable, GraphExecDestroy)

#define WEFT_GPU_FUNCTION(name, of_vendor)       \
  template <class... A>                          \
  auto name(A... arguments) {                    \
    return WEFT_VENDOR(of_vendor)(arguments...); \
  }
WEFT_GPU_FUNCTIONS(WEFT_GPU_FUNCTION)
#undef WEFT_GPU_FUNCTION

/// Blocks of a launch.
struct Grid {
  unsigned x = 1, y = 1, z = 1;
};
/// How a kernel is launched.
struct Launch {
  Grid blocks;
  unsigned threads = 1;  ///< of a block
  size_t shared = 0;     ///< bytes of dynamic shared memory
  Stream stream = nullptr;
  bool early = false;     ///< It may start while the kernel before it drains.
  unsigned cluster = 1;   ///< blocks next to each other that run at the same time
  bool together = false;  ///< All blocks run at the same time, or the launch fails.
};

/// Kernels that the runtime itself has for this backend's list, behind those of kernels/.
inline std::span<const weft_kernel* const> kernels_of_runtime(const weft_host*) { return {}; }

}  // namespace weft::gpu
