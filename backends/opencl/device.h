#pragma once
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "library.h"

struct weft_module_s {
  weft_device device;
  cl_program program;
  cl_kernel kernel;
  std::string entry;
  std::mutex mutex;  ///< clSetKernelArg and the enqueue that reads the arguments belong together.
};

struct weft_device_s {
  uint32_t ordinal;
  cl_device_id id;
  cl_context context;
  std::string build_options;
  std::string identity;  ///< Device, driver and options: what a compiled binary is good for.
  /// PoCL keeps what it compiles on disk itself, and compiles all of it once more when asked for the binary.
  bool keeps_binaries = false;
  weft::opencl::CommandBuffers command_buffers;
  std::mutex mutex;  ///< Guards what follows.
  std::set<weft_module> modules;
  /// Recently built programs by key: the next module may be another function of one.
  std::deque<std::pair<std::string, cl_program>> recent;
  std::map<void*, char*> pinned;       ///< Buffers that are mapped as long as they live, and where.
  cl_command_queue mapping = nullptr;  ///< In which they are.
};

struct weft_queue_s {
  weft_device device;
  cl_command_queue queue;
  weft_sequence recording = nullptr;  ///< Where what is enqueued goes instead.
  /// Dispatches and copies not known to have succeeded, by name: clFinish does not say which one failed.
  std::vector<std::pair<cl_event, std::string>> running;
  std::string first_error;
  std::vector<cl_event> stamps;                      ///< Markers whose times are to be read.
  std::mutex mutex;                                  ///< Guards what follows, which any thread may ask for.
  std::deque<std::pair<uint64_t, cl_event>> points;  ///< Not known to have been reached.
  uint64_t marked = 0, reached = 0;
};

namespace weft::opencl {

/// Entries of weft_backend; weft/backend.h specifies them.
weft_code probe(weft_probe*, weft_error*);
weft_code describe(uint32_t ordinal, weft_capability*, weft_error*);
weft_code open_device(uint32_t ordinal, weft_device*, weft_capability*, weft_error*);
void close_device(weft_device);
weft_code allocate(weft_device, uint64_t bytes, void** handle, weft_error*);
weft_code allocate_pinned(weft_device, uint64_t bytes, void** handle, void** address, weft_error*);
void free_buffer(weft_device, void* handle);
weft_code open_queue(weft_device, weft_queue*, weft_error*);
void close_queue(weft_queue);
weft_code copy(weft_queue, const weft_copy*, weft_error*);
weft_code synchronize(weft_queue, weft_error*);
weft_code compile(weft_device, const weft_source*, weft_module*, weft_error*);
void release_module(weft_module);
weft_code dispatch(weft_queue, const weft_dispatch*, weft_error*);
weft_code mark(weft_queue, uint64_t* point, weft_error*);
weft_code wait(weft_queue, weft_queue other, uint64_t point, weft_error*);
weft_code await(weft_queue, uint64_t point, uint64_t nanoseconds, uint64_t* reached, weft_error*);
weft_code stamp(weft_queue, weft_error*);
weft_code read_stamps(weft_queue, uint64_t* nanoseconds, uint32_t n, weft_error*);
weft_code import_memory(weft_device, const DLTensor*, uint64_t bytes, void** handle, weft_error*);
weft_code import_queue(weft_device, void* native, weft_queue*, weft_error*);
weft_code native(weft_device, weft_queue, const char* name, void** object, weft_error*);
weft_code make_sequence(weft_device, const weft_sequence_desc*, weft_sequence*, uint32_t* refused,
                        weft_error*);
weft_code run_sequence(weft_sequence, weft_queue, void* const* handles, uint32_t n, weft_error*);
void free_sequence(weft_sequence);

/// The number of items of a dispatch and the size of its groups.
struct Range {
  size_t global[3], local[3];
};
Range range_of(const weft_dispatch&);
/// Calls `set` for each argument: buffers, then the element at which each begins, then the scalars.
using SetArgument = std::function<cl_int(cl_uint position, size_t size, const void* value)>;
weft_code for_each_argument(const weft_dispatch&, const SetArgument& set, weft_error*);
/// Adds a dispatch to the sequence that the queue records.
weft_code record(weft_queue, const weft_dispatch&, weft_error*);
/// The next synchronize reports a failure of the event's command, with the name.
void watch(weft_queue_s&, cl_event, const char* name);

/// The mapped address of a handle of allocate_pinned; null for other handles.
char* pinned_address(weft_device, void* handle);

/// The host's services, from negotiate.
const weft_host* host();

}  // namespace weft::opencl
