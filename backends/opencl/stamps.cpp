#include <utility>

#include "device.h"

// The device's clock: markers, and when each of them ended.
namespace weft::opencl {

weft_code stamp(weft_queue q, weft_error* error) {
  cl_event event = nullptr;
  const cl_int code = library().clEnqueueMarkerWithWaitList(q->queue, 0, nullptr, &event);
  if (code != CL_SUCCESS)
    return fail(error, WEFT_DEVICE, "opencl:%u: noting the time: %s", q->device->ordinal,
                code_text(code).c_str());
  q->stamps.push_back(event);
  return WEFT_OK;
}

weft_code read_stamps(weft_queue q, uint64_t* nanoseconds, uint32_t n, weft_error* error) {
  const auto stamps = std::exchange(q->stamps, {});
  cl_int code = library().clFinish(q->queue);
  for (size_t i = 0; i < stamps.size(); ++i) {
    cl_ulong at = 0;
    if (code == CL_SUCCESS)
      code = library().clGetEventProfilingInfo(stamps[i], CL_PROFILING_COMMAND_END, sizeof at, &at, nullptr);
    if (i < n) nanoseconds[i] = at;
    library().clReleaseEvent(stamps[i]);
  }
  if (code == CL_PROFILING_INFO_NOT_AVAILABLE)
    return fail(error, WEFT_UNSUPPORTED, "opencl:%u: the queue was made without CL_QUEUE_PROFILING_ENABLE",
                q->device->ordinal);
  if (code != CL_SUCCESS || stamps.size() != n)
    return fail(error, WEFT_DEVICE, "opencl:%u: reading %u times of %zu: %s", q->device->ordinal, n,
                stamps.size(), code_text(code).c_str());
  for (uint32_t i = n; i-- > 0;) nanoseconds[i] -= nanoseconds[0];
  return WEFT_OK;
}

}  // namespace weft::opencl
