#pragma once
#include <functional>
#include <string>

#include "runtime.hpp"

// Devices of the emulated runtime, and what may go wrong with them.
namespace weft::gpu {

/// That of the calling thread.
int current_device();
/// Whether the device has failed: nothing that is asked of it succeeds any more.
bool failed(int device);
/// Runs a kernel, or what WEFT_EMULATED_FAULT and WEFT_EMULATED_HANG say instead.
void run_kernel(int device, std::string_view name, const std::function<std::string()>& kernel);
/// For get_error_string.
void set_error_text(const std::string&);
void copy_bytes(void* to, const void* from, size_t bytes);

}  // namespace weft::gpu
