#include <cstring>

#include "device.h"

namespace weft::opencl {
namespace {

constexpr size_t kManyRunning = 256;  // then completed ones are dropped
constexpr size_t kGroup = 64;

/// Drops completed dispatches and keeps the first failure.
void collect(weft_queue_s& q) {
  std::erase_if(q.running, [&](auto& entry) {
    cl_int status = CL_COMPLETE;
    library().clGetEventInfo(entry.first, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    if (status > CL_COMPLETE) return false;
    if (status < 0 && q.first_error.empty()) q.first_error = entry.second + ": " + code_text(status);
    library().clReleaseEvent(entry.first);
    return true;
  });
}

cl_mem memory(void* handle) { return static_cast<cl_mem>(handle); }

}  // namespace

void watch(weft_queue_s& q, cl_event event, const char* name) {
  q.running.emplace_back(event, name);
  if (q.running.size() < kManyRunning) return;
  library().clFlush(q.queue);
  collect(q);
}

weft_code for_each_argument(const weft_dispatch& d, const SetArgument& set_argument, weft_error* error) {
  cl_uint at = 0;
  cl_int code = CL_SUCCESS;
  const auto set = [&](size_t size, const void* value) {
    if (code == CL_SUCCESS) code = set_argument(at++, size, value);
  };
  for (uint32_t i = 0; i < d.n_buffers; ++i) {
    const cl_mem handle = memory(d.buffers[i]->dl.data);
    set(sizeof handle, &handle);
  }
  for (uint32_t i = 0; i < d.n_buffers; ++i) {
    const DLTensor& t = d.buffers[i]->dl;
    const uint64_t bytes = std::max(1, t.dtype.bits / 8);
    if (t.byte_offset % bytes)
      return fail(error, WEFT_UNSUPPORTED, "%s: buffer %u begins at byte %llu, wanted a multiple of %llu",
                  d.name, i, static_cast<unsigned long long>(t.byte_offset),
                  static_cast<unsigned long long>(bytes));
    const auto offset = static_cast<cl_long>(t.byte_offset / bytes);
    set(sizeof offset, &offset);
  }
  for (uint32_t i = 0; i < d.n_scalars; ++i) set(sizeof d.scalars[i], &d.scalars[i]);
  if (code == CL_SUCCESS) return WEFT_OK;
  return fail(error, WEFT_INVALID_ARGUMENT, "%s: argument %u of %u: %s", d.name, at - 1,
              2 * d.n_buffers + d.n_scalars, code_text(code).c_str());
}

weft_code open_queue(weft_device device, weft_queue* out, weft_error* error) {
  cl_int code = CL_SUCCESS;
  cl_command_queue queue =
      library().clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &code);
  if (code != CL_SUCCESS)
    return fail(error, WEFT_DEVICE, "opencl:%u: clCreateCommandQueue: %s", device->ordinal,
                code_text(code).c_str());
  *out = new weft_queue_s{.device = device, .queue = queue};
  return WEFT_OK;
}

// Only queues of this context: handles of its buffers mean nothing to others.
weft_code import_queue(weft_device device, void* native, weft_queue* out, weft_error* error) {
  const auto queue = static_cast<cl_command_queue>(native);
  cl_context context = nullptr;
  library().clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr);
  if (context != device->context)
    return fail(error, WEFT_INVALID_ARGUMENT, "opencl:%u: the queue is of another context", device->ordinal);
  library().clRetainCommandQueue(queue);
  *out = new weft_queue_s{.device = device, .queue = queue};
  return WEFT_OK;
}

void close_queue(weft_queue q) {
  library().clFinish(q->queue);
  for (auto& entry : q->running) library().clReleaseEvent(entry.first);
  for (auto& entry : q->points) library().clReleaseEvent(entry.second);
  for (const cl_event stamp : q->stamps) library().clReleaseEvent(stamp);
  library().clReleaseCommandQueue(q->queue);
  delete q;
}

weft_code copy(weft_queue q, const weft_copy* c, weft_error* error) {
  if (c->bytes == 0) return WEFT_OK;
  const Library& l = library();
  cl_int code = CL_SUCCESS;
  cl_event event = nullptr;
  const char* from = c->source ? pinned_address(q->device, c->source) : nullptr;
  char* to = c->target ? pinned_address(q->device, c->target) : nullptr;
  if (from && c->target) {
    code = l.clEnqueueWriteBuffer(q->queue, memory(c->target), CL_FALSE, c->target_offset, c->bytes,
                                  from + c->source_offset, 0, nullptr, &event);
  } else if (to && c->source) {
    code = l.clEnqueueReadBuffer(q->queue, memory(c->source), CL_FALSE, c->source_offset, c->bytes,
                                 to + c->target_offset, 0, nullptr, &event);
  } else if (c->source && c->target) {
    code = l.clEnqueueCopyBuffer(q->queue, memory(c->source), memory(c->target), c->source_offset,
                                 c->target_offset, c->bytes, 0, nullptr, nullptr);
  } else if (c->source) {
    code = l.clEnqueueReadBuffer(q->queue, memory(c->source), CL_TRUE, c->source_offset, c->bytes,
                                 c->host_target, 0, nullptr, nullptr);
  } else if (c->target) {
    // Blocking: the host may write its memory again as soon as this returns.
    code = l.clEnqueueWriteBuffer(q->queue, memory(c->target), CL_TRUE, c->target_offset, c->bytes,
                                  c->host_source, 0, nullptr, nullptr);
  } else {
    std::memmove(c->host_target, c->host_source, c->bytes);
  }
  if (code != CL_SUCCESS)
    return fail(error, WEFT_DEVICE, "opencl:%u: copy of %llu bytes: %s", q->device->ordinal,
                static_cast<unsigned long long>(c->bytes), code_text(code).c_str());
  if (event) watch(*q, event, "a copy");
  return WEFT_OK;
}

weft_code synchronize(weft_queue q, weft_error* error) {
  const cl_int code = library().clFinish(q->queue);
  collect(*q);
  if (!q->first_error.empty()) {
    const std::string what = std::move(q->first_error);
    q->first_error.clear();
    return fail(error, WEFT_DEVICE, "opencl:%u: %s", q->device->ordinal, what.c_str());
  }
  if (code == CL_SUCCESS) return WEFT_OK;
  return fail(error, WEFT_DEVICE, "opencl:%u: clFinish: %s", q->device->ordinal, code_text(code).c_str());
}

Range range_of(const weft_dispatch& d) {
  Range r;
  for (int i = 0; i < 3; ++i) {
    const uint64_t items = i == 0 ? d.global[0] : std::max<uint64_t>(d.global[i], 1);
    // One group size, even for few items: some drivers compile a function again for each size.
    r.local[i] = d.local[0] ? std::max<uint64_t>(d.local[i], 1) : i == 0 ? kGroup : 1;
    r.global[i] = (items + r.local[i] - 1) / r.local[i] * r.local[i];  // the text skips the items beyond
  }
  return r;
}

weft_code dispatch(weft_queue q, const weft_dispatch* d, weft_error* error) {
  if (d->global[0] == 0) return WEFT_OK;
  if (q->recording) return record(q, *d, error);
  const Range range = range_of(*d);
  cl_event event = nullptr;
  {
    std::lock_guard lock(d->module->mutex);
    const auto set = [&](cl_uint position, size_t size, const void* value) {
      return library().clSetKernelArg(d->module->kernel, position, size, value);
    };
    if (const weft_code code = for_each_argument(*d, set, error); code != WEFT_OK) return code;
    const cl_int code = library().clEnqueueNDRangeKernel(q->queue, d->module->kernel, 3, nullptr,
                                                         range.global, range.local, 0, nullptr, &event);
    if (code != CL_SUCCESS)
      return fail(error, WEFT_DEVICE, "%s: clEnqueueNDRangeKernel of %zu items: %s", d->name, range.global[0],
                  code_text(code).c_str());
  }
  watch(*q, event, d->name ? d->name : "");
  return WEFT_OK;
}

}  // namespace weft::opencl
