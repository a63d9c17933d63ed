#include "library.h"

#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>

#include "weft/backend/base.hpp"

namespace weft::opencl {
namespace {

constexpr const char* kLibrary = "libOpenCL.so.1";

void list_devices(Library& l) {
  cl_uint n = 0;
  const cl_int code =
      l.clGetPlatformIDs(0, nullptr, &n);  // CL_PLATFORM_NOT_FOUND_KHR where no driver is installed
  std::vector<cl_platform_id> platforms(code == CL_SUCCESS ? n : 0);
  if (!platforms.empty()) l.clGetPlatformIDs(n, platforms.data(), nullptr);
  for (cl_platform_id platform : platforms) {
    cl_uint count = 0;
    if (l.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0)
      continue;
    const size_t before = l.devices.size();
    l.devices.resize(before + count);
    l.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, l.devices.data() + before, nullptr);
  }
  if (l.devices.empty())
    l.reason = "libOpenCL.so.1 found, but no device (" + std::to_string(platforms.size()) +
               " platforms); install a driver such as pocl-opencl-icd";
}

Library open() {
  Library l;
  void* handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    l.reason = "libOpenCL.so.1 not found; install ocl-icd-libopencl1 and a driver such as pocl-opencl-icd";
    return l;
  }
#define WEFT_OPENCL_LOAD(f)                                 \
  l.f = reinterpret_cast<decltype(l.f)>(dlsym(handle, #f)); \
  if (!l.f && l.reason.empty()) l.reason = std::string(kLibrary) + " has no function " #f;
  WEFT_OPENCL_FUNCTIONS(WEFT_OPENCL_LOAD)
#undef WEFT_OPENCL_LOAD
  if (l.reason.empty()) list_devices(l);
  return l;
}

}  // namespace

const Library& library() {
  static const Library& l =
      *new Library(open());  // never destroyed: plans may be released while the process ends
  return l;
}

CommandBuffers command_buffers(cl_device_id device) {
  CommandBuffers c;
  const auto can = device_info<cl_device_command_buffer_capabilities_khr>(
      device, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR);
  if (device_text(device, CL_DEVICE_EXTENSIONS).find("cl_khr_command_buffer") == std::string::npos ||
      !(can & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR))
    return c;
  const auto platform = device_info<cl_platform_id>(device, CL_DEVICE_PLATFORM);
  bool all = true;
#define WEFT_OPENCL_LOAD(f)                                                                                \
  c.f = reinterpret_cast<decltype(c.f)>(library().clGetExtensionFunctionAddressForPlatform(platform, #f)); \
  all = all && c.f;
  WEFT_OPENCL_COMMAND_BUFFER(WEFT_OPENCL_LOAD)
#undef WEFT_OPENCL_LOAD
  return all ? c : CommandBuffers();
}

std::string code_text(cl_int code) {
  const char* text = "";
  switch (code) {
    case CL_DEVICE_NOT_AVAILABLE: text = "CL_DEVICE_NOT_AVAILABLE "; break;
    case CL_COMPILER_NOT_AVAILABLE: text = "CL_COMPILER_NOT_AVAILABLE "; break;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE: text = "CL_MEM_OBJECT_ALLOCATION_FAILURE "; break;
    case CL_OUT_OF_RESOURCES: text = "CL_OUT_OF_RESOURCES "; break;
    case CL_OUT_OF_HOST_MEMORY: text = "CL_OUT_OF_HOST_MEMORY "; break;
    case CL_BUILD_PROGRAM_FAILURE: text = "CL_BUILD_PROGRAM_FAILURE "; break;
    case CL_INVALID_VALUE: text = "CL_INVALID_VALUE "; break;
    case CL_INVALID_BUFFER_SIZE: text = "CL_INVALID_BUFFER_SIZE "; break;
    case CL_INVALID_KERNEL_NAME: text = "CL_INVALID_KERNEL_NAME "; break;
    case CL_INVALID_KERNEL_ARGS: text = "CL_INVALID_KERNEL_ARGS "; break;
    case CL_INVALID_ARG_INDEX: text = "CL_INVALID_ARG_INDEX "; break;
    case CL_INVALID_WORK_GROUP_SIZE: text = "CL_INVALID_WORK_GROUP_SIZE "; break;
    case CL_MEM_COPY_OVERLAP: text = "CL_MEM_COPY_OVERLAP "; break;
    default: break;
  }
  return std::string(text) + "(" + std::to_string(code) + ")";
}

weft_code fail(weft_error* error, weft_code code, const char* format, ...) {
  char text[sizeof error->text];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return backend::fill(error, code, text);
}

std::string device_text(cl_device_id device, cl_device_info what) {
  size_t n = 0;
  library().clGetDeviceInfo(device, what, 0, nullptr, &n);
  std::string text(n, '\0');
  library().clGetDeviceInfo(device, what, n, text.data(), nullptr);
  while (!text.empty() && (text.back() == '\0' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace weft::opencl
