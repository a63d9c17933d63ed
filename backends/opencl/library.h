#pragma once
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <string>
#include <vector>

#include "weft/backend.h"

namespace weft::opencl {

// clang-format off: it takes minutes for this list
#define WEFT_OPENCL_FUNCTIONS(X)                                                                   \
  X(clGetPlatformIDs) X(clGetDeviceIDs) X(clGetDeviceInfo) X(clCreateContext)                      \
  X(clReleaseContext) X(clCreateCommandQueue) X(clReleaseCommandQueue) X(clRetainCommandQueue)     \
  X(clGetCommandQueueInfo) X(clRetainMemObject) X(clCreateBuffer) X(clReleaseMemObject)            \
  X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer) X(clEnqueueCopyBuffer) X(clEnqueueMapBuffer)      \
  X(clEnqueueUnmapMemObject) X(clEnqueueNDRangeKernel) X(clEnqueueMarkerWithWaitList)              \
  X(clEnqueueBarrierWithWaitList) X(clFinish) X(clFlush) X(clWaitForEvents) X(clGetEventInfo)      \
  X(clRetainEvent) X(clReleaseEvent) X(clCreateProgramWithSource) X(clCreateProgramWithBinary)     \
  X(clBuildProgram) X(clGetProgramInfo) X(clGetProgramBuildInfo) X(clReleaseProgram)               \
  X(clRetainProgram) X(clCreateKernel) X(clReleaseKernel) X(clSetKernelArg)                        \
  X(clGetKernelWorkGroupInfo) X(clGetEventProfilingInfo)                                           \
  X(clGetExtensionFunctionAddressForPlatform)
#define WEFT_OPENCL_COMMAND_BUFFER(X)                                                              \
  X(clCreateCommandBufferKHR) X(clFinalizeCommandBufferKHR) X(clReleaseCommandBufferKHR)           \
  X(clEnqueueCommandBufferKHR) X(clCommandNDRangeKernelKHR) X(clCommandCopyBufferKHR)
// clang-format on

/// The ICD loader, opened at run time so that one build serves machines with and without OpenCL. Stays open:
/// drivers do not survive being unloaded.
struct Library {
#define WEFT_OPENCL_DECLARE(f) decltype(&::f) f = nullptr;
  WEFT_OPENCL_FUNCTIONS(WEFT_OPENCL_DECLARE)
#undef WEFT_OPENCL_DECLARE
  std::vector<cl_device_id> devices;  ///< Of every platform, in the loader's order.
  std::string reason;                 ///< Why there are no devices.
};

/// A platform's cl_khr_command_buffer; all null if anything is missing.
struct CommandBuffers {
#define WEFT_OPENCL_DECLARE(f) f##_fn f = nullptr;
  WEFT_OPENCL_COMMAND_BUFFER(WEFT_OPENCL_DECLARE)
#undef WEFT_OPENCL_DECLARE
};
/// For devices that allow one command buffer to be pending several times.
CommandBuffers command_buffers(cl_device_id device);

/// Opens the library and lists the devices at the first call.
const Library& library();

/// "CL_OUT_OF_RESOURCES (-5)" for common codes, the number for others.
std::string code_text(cl_int code);

/// Writes a printf text into `error` and returns `code`.
__attribute__((format(printf, 3, 4))) weft_code fail(weft_error* error, weft_code code, const char* format,
                                                     ...);

template <class T>
T device_info(cl_device_id device, cl_device_info what) {
  T value{};
  library().clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}
std::string device_text(cl_device_id device, cl_device_info what);

}  // namespace weft::opencl
