#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "weft/backend.h"

// The runtime of a GPU (backends/cuda/gpu.hpp) on a CPU, for tests of the host's side: each stream is a
// thread, a kernel is a function that it calls, a captured graph is run in a drawn order that its edges
// allow.
//
//   WEFT_EMULATED_DEVICES=n   how many devices there are (1)
//   WEFT_EMULATED_MEMORY=n    bytes that a device has (2^32)
//   WEFT_EMULATED_FAULT=n     the n-th kernel reads where nothing is, which the device does not survive
//   WEFT_EMULATED_HANG=n      the n-th kernel does not end
//   WEFT_EMULATED_KERNELS=f   each kernel that runs adds its name to this file, a line each
namespace weft::gpu {

enum class Error {
  success,
  invalid_value,
  out_of_memory,
  not_ready,
  unjoined,
  peer_known,
  no_device,
  function_failed,
  fault
};

struct StreamOfThread;
struct EventOfStream;
struct CapturedGraph;
using Stream = StreamOfThread*;
using Event = EventOfStream*;
using Graph = CapturedGraph*;
using GraphExec = CapturedGraph*;
using Module = void*;
using Function = void*;

struct Properties {
  char name[64];
  int major, minor, multiProcessorCount, maxThreadsPerMultiProcessor, maxThreadsPerBlock, warpSize;
  size_t totalGlobalMem, sharedMemPerBlock;
};

inline constexpr Error kSuccess = Error::success, kNotReady = Error::not_ready,
                       kPeerKnown = Error::peer_known, kOutOfMemory = Error::out_of_memory;
inline constexpr int kCopyByAddress = 0, kCaptureOfThread = 0;
inline constexpr unsigned kUnordered = 0, kWithoutTime = 0, kWithTime = 0;
inline constexpr const char *kKind = "emulated", *kNativeStream = "emulated.stream", *kVendor = "emulated";
inline constexpr DLDeviceType kMemory = kDLExtDev;
/// Whether kernels of a device may use such memory.
inline bool reaches(int ordinal, DLDevice there) {
  return there.device_type == kDLCPU || (there.device_type == kMemory && there.device_id == ordinal);
}

/// There is no compiler of texts.
inline constexpr const char* kCompilers[] = {"a compiler of texts for the emulated GPU"};
inline constexpr const char *kCompilerPrefix = "", *kCompilerCode = "", *kTargetOption = "";
inline constexpr std::span<const char* const> kCompilerOptions;
inline std::string target_of(const Properties&) { return "emulated"; }
inline std::string refused(const Properties&) { return ""; }
inline bool starts_early(const Properties&) { return false; }
inline bool has_clusters(const Properties&) { return false; }
inline bool has_chains(const Properties&) { return true; }
inline std::string version_text(int number) { return std::to_string(number); }

/// Which device is a thread's is always told anew.
using Context = void*;
inline Context current_context() { return nullptr; }

const char* get_error_string(Error);
Error get_last_error();
Error driver_version(int*);
Error runtime_version(int*);
Error device_count(int*);
Error properties(Properties*, int device);
Error set_device(int device);
Error can_access_peer(int* can, int device, int other);
Error enable_peer(int other, unsigned flags);

Error memory_info(size_t* left, size_t* all);
Error allocate(void** at, size_t bytes);
Error release(void* at);
Error allocate_host(void** at, size_t bytes);
Error release_host(void* at);
Error copy_async(void* to, const void* from, size_t bytes, int, Stream);

Error create_stream(Stream*, unsigned flags);
Error destroy_stream(Stream);
Error synchronize_stream(Stream);
Error query_stream(Stream);
Error device_of_stream(Stream, int* device);
Error wait_for_event(Stream, Event, unsigned flags);
Error create_event(Event*, unsigned flags);
Error destroy_event(Event);
Error record_event(Event, Stream);
Error query_event(Event);
Error milliseconds_between(float*, Event first, Event second);

Error begin_capture(Stream, int mode);
Error end_capture(Stream, Graph*);
Error destroy_graph(Graph);
Error instantiate_graph(GraphExec*, Graph, unsigned flags);
Error update(GraphExec, Graph);
Error launch_graph(GraphExec, Stream);
Error destroy_executable(GraphExec);

inline Error load(Module*, const void*) { return Error::invalid_value; }
inline Error unload(Module) { return Error::invalid_value; }
inline Error find_function(Function*, Module, const char*) { return Error::invalid_value; }

struct Grid {
  unsigned x = 1, y = 1, z = 1;
};
struct Launch {
  Grid blocks;
  unsigned threads = 1;
  size_t shared = 0;
  Stream stream = nullptr;
  bool early = false;
};
inline Error launch_function(const Launch&, Function, void**) { return Error::invalid_value; }

/// Runs a kernel when its turn comes; the text that it returns says what is wrong with it, and the device has
/// failed then. Empty: nothing. The name outlives all streams. `begin` is called before the kernel that comes
/// just before this one.
Error enqueue_kernel(Stream, std::string_view name, std::function<std::string()> kernel,
                     std::function<void()> begin);

/// Runs a function of the host when its turn comes; the next wait for the stream answers with its text once.
Error enqueue_function(Stream, std::function<std::string()> function);

/// Every primitive op, as functions of the host that run in a stream's order.
std::span<const weft_kernel* const> kernels_of_runtime(const weft_host*);

}  // namespace weft::gpu
