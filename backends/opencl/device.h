#pragma once
#include <mutex>
#include <set>

#include "library.h"

struct weft_module_s {
  weft_device device;
  cl_program program;
  cl_kernel kernel;
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
  std::mutex mutex;  ///< Guards what follows.
  std::set<weft_module> modules;
  std::string last_key;  ///< The program that was built last: the next module may be another function of it.
  cl_program last = nullptr;
};

namespace weft::opencl {

/// Names of weft/backend.h: see there for what each must do.
weft_code probe(weft_probe*, weft_error*);
weft_code open_device(uint32_t ordinal, weft_device*, weft_capability*, weft_error*);
void close_device(weft_device);
weft_code allocate(weft_device, uint64_t bytes, void** handle, weft_error*);
void free_buffer(weft_device, void* handle);
weft_code open_queue(weft_device, weft_queue*, weft_error*);
void close_queue(weft_queue);
weft_code copy(weft_queue, const weft_copy*, weft_error*);
weft_code synchronize(weft_queue, weft_error*);
weft_code compile(weft_device, const weft_source*, weft_module*, weft_error*);
void release_module(weft_module);
weft_code dispatch(weft_queue, const weft_dispatch*, weft_error*);

/// The host's services, from negotiate.
const weft_host* host();

}  // namespace weft::opencl
