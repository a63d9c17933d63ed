#include <algorithm>
#include <deque>
#include <memory>

#include "device.h"

// Sequences: each dispatch has its own kernel object; only arguments that are bindings are set again. On
// devices with command buffers, one is recorded for each set of bindings, and the last few are kept.
namespace weft::opencl {
namespace {

constexpr size_t kMostRecordings = 4;
constexpr size_t kWatched = 16;  // an event for each command takes a fifth of the time on NVIDIA

cl_mem memory(void* handle) { return static_cast<cl_mem>(handle); }

/// An argument of a kernel: these bytes, or the memory of a binding.
struct Argument {
  std::string bytes;
  uint32_t binding = 0;
};

/// A dispatch; without a module, a copy.
struct Command {
  weft_module module = nullptr;
  std::vector<Argument> arguments;
  Range range{};
  weft_copy copy{};
  std::string name;
};

using Handles = std::vector<void*>;
using Kernels = std::vector<cl_kernel>;  // by command; null for a copy

/// The steps as a command buffer, with these bindings. It has its own kernel objects: PoCL 3.1 reads their
/// arguments when the buffer runs, not when it is recorded.
struct Recording {
  Handles handles;
  Kernels kernels;
  cl_command_buffer_khr buffer;
};

weft_code failed(weft_error* error, const Command& c, const char* what, cl_int code) {
  return fail(error, WEFT_DEVICE, "%s: %s: %s", c.name.c_str(), what, code_text(code).c_str());
}

/// The copy with its bindings' memory.
weft_copy bound(const weft_copy& c, const Handles& handles) {
  weft_copy to = c;
  if (c.source_binding) to.source = handles[c.source_binding - 1];
  if (c.target_binding) to.target = handles[c.target_binding - 1];
  return to;
}

}  // namespace
}  // namespace weft::opencl

struct weft_sequence_s {
  weft_device device;
  std::vector<weft::opencl::Command> commands;
  weft::opencl::Kernels kernels;                     ///< Where there are no command buffers.
  weft::opencl::Handles set;                         ///< The bindings that their arguments are now.
  std::deque<weft::opencl::Recording> recordings{};  ///< The last used first.
};

namespace weft::opencl {
namespace {

void release(const Kernels& kernels) {
  for (const cl_kernel k : kernels)
    if (k) library().clReleaseKernel(k);
}

weft_code set_arguments(cl_kernel kernel, const Command& c, const Handles& handles, bool bindings_alone,
                        weft_error* error) {
  for (cl_uint i = 0; i < c.arguments.size(); ++i) {
    const Argument& a = c.arguments[i];
    if (bindings_alone && !a.binding) continue;
    const cl_mem bound = a.binding ? memory(handles[a.binding - 1]) : nullptr;
    const cl_int code = a.binding ? library().clSetKernelArg(kernel, i, sizeof bound, &bound)
                                  : library().clSetKernelArg(kernel, i, a.bytes.size(), a.bytes.data());
    if (code != CL_SUCCESS) return failed(error, c, "clSetKernelArg", code);
  }
  return WEFT_OK;
}

weft_code make_kernels(const weft_sequence_s& s, const Handles& handles, Kernels* out, weft_error* error) {
  for (const Command& c : s.commands) {
    out->push_back(nullptr);
    if (!c.module) continue;
    cl_int code = CL_SUCCESS;
    out->back() = library().clCreateKernel(c.module->program, c.module->entry.c_str(), &code);
    if (code != CL_SUCCESS) return failed(error, c, "clCreateKernel", code);
    if (const weft_code set = set_arguments(out->back(), c, handles, false, error); set != WEFT_OK)
      return set;
  }
  return WEFT_OK;
}

weft_code record_commands(const weft_sequence_s& s, const Recording& r, weft_error* error) {
  const CommandBuffers& l = s.device->command_buffers;
  for (size_t i = 0; i < s.commands.size(); ++i) {  // an in-order queue keeps their order
    const Command& c = s.commands[i];
    cl_int code = CL_SUCCESS;
    if (c.module) {
      code = l.clCommandNDRangeKernelKHR(r.buffer, nullptr, nullptr, r.kernels[i], 3, nullptr, c.range.global,
                                         c.range.local, 0, nullptr, nullptr, nullptr);
    } else {
      const weft_copy copy = bound(c.copy, r.handles);
      code = l.clCommandCopyBufferKHR(r.buffer, nullptr, memory(copy.source), memory(copy.target),
                                      copy.source_offset, copy.target_offset, copy.bytes, 0, nullptr, nullptr,
                                      nullptr);
    }
    if (code != CL_SUCCESS) return failed(error, c, "recording a command", code);
  }
  const cl_int code = l.clFinalizeCommandBufferKHR(r.buffer);
  if (code == CL_SUCCESS) return WEFT_OK;
  return fail(error, WEFT_DEVICE, "opencl:%u: clFinalizeCommandBufferKHR: %s", s.device->ordinal,
              code_text(code).c_str());
}

void release(const weft_sequence_s& s, const Recording& r) {  // a pending buffer ends when it has run
  if (r.buffer) s.device->command_buffers.clReleaseCommandBufferKHR(r.buffer);
  release(r.kernels);
}

weft_code make_recording(const weft_sequence_s& s, weft_queue q, Recording& r, weft_error* error) {
  const cl_command_buffer_properties_khr many_times[] = {CL_COMMAND_BUFFER_FLAGS_KHR,
                                                         CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
  if (const weft_code code = make_kernels(s, r.handles, &r.kernels, error); code != WEFT_OK) return code;
  cl_int code = CL_SUCCESS;
  r.buffer = s.device->command_buffers.clCreateCommandBufferKHR(1, &q->queue, many_times, &code);
  if (code == CL_SUCCESS) return record_commands(s, r, error);
  return fail(error, WEFT_DEVICE, "opencl:%u: clCreateCommandBufferKHR: %s", s.device->ordinal,
              code_text(code).c_str());
}

/// The command buffer for these bindings; the sequence owns it.
weft_code buffer_for(weft_sequence_s& s, weft_queue q, const Handles& handles, cl_command_buffer_khr* out,
                     weft_error* error) {
  for (auto at = s.recordings.begin(); at != s.recordings.end(); ++at)
    if (at->handles == handles) {
      std::rotate(s.recordings.begin(), at, at + 1);
      *out = s.recordings.front().buffer;
      return WEFT_OK;
    }
  Recording made{handles, {}, nullptr};
  if (const weft_code code = make_recording(s, q, made, error); code != WEFT_OK) {
    release(s, made);
    return code;
  }
  if (s.recordings.size() == kMostRecordings) {
    release(s, s.recordings.back());
    s.recordings.pop_back();
  }
  *out = made.buffer;
  s.recordings.push_front(std::move(made));
  return WEFT_OK;
}

weft_code run_buffer(weft_sequence_s& s, weft_queue q, const Handles& handles, weft_error* error) {
  cl_command_buffer_khr buffer = nullptr;
  if (const weft_code code = buffer_for(s, q, handles, &buffer, error); code != WEFT_OK) return code;
  cl_event event = nullptr;
  const cl_int code =
      q->device->command_buffers.clEnqueueCommandBufferKHR(1, &q->queue, buffer, 0, nullptr, &event);
  if (code != CL_SUCCESS)
    return fail(error, WEFT_DEVICE, "opencl:%u: clEnqueueCommandBufferKHR: %s", q->device->ordinal,
                code_text(code).c_str());
  watch(*q, event, s.commands.back().name.c_str());
  return WEFT_OK;
}

weft_code bind(weft_sequence_s& s, const Handles& handles, weft_error* error) {
  if (s.kernels.empty()) {
    Kernels made;
    if (const weft_code code = make_kernels(s, handles, &made, error); code != WEFT_OK) {
      release(made);
      return code;
    }
    s.kernels = std::move(made);
  } else if (s.set != handles) {
    s.set.clear();  // until all of them are set
    for (size_t i = 0; i < s.commands.size(); ++i)
      if (const weft_code code = set_arguments(s.kernels[i], s.commands[i], handles, true, error);
          code != WEFT_OK)
        return code;
  }
  s.set = handles;
  return WEFT_OK;
}

weft_code run_each(weft_sequence_s& s, weft_queue q, const Handles& handles, weft_error* error) {
  if (const weft_code code = bind(s, handles, error); code != WEFT_OK) return code;
  for (size_t i = 0; i < s.commands.size(); ++i) {
    const Command& c = s.commands[i];
    const bool watched = (i + 1) % kWatched == 0 || i + 1 == s.commands.size();
    cl_event event = nullptr;
    cl_int code = CL_SUCCESS;
    if (c.module) {
      code = library().clEnqueueNDRangeKernel(q->queue, s.kernels[i], 3, nullptr, c.range.global,
                                              c.range.local, 0, nullptr, watched ? &event : nullptr);
    } else {
      const weft_copy copy = bound(c.copy, handles);
      if (const weft_code copied = weft::opencl::copy(q, &copy, error); copied != WEFT_OK) return copied;
      if (watched) code = library().clEnqueueMarkerWithWaitList(q->queue, 0, nullptr, &event);
    }
    if (code != CL_SUCCESS) return failed(error, c, "enqueuing a sequence", code);
    if (event) watch(*q, event, ("a sequence, up to " + c.name).c_str());
  }
  return WEFT_OK;
}

}  // namespace

weft_code record(weft_queue q, const weft_dispatch& d, weft_error* error) {
  Command c{.module = d.module, .range = range_of(d), .name = d.name ? d.name : ""};
  const auto set = [&](cl_uint position, size_t size, const void* value) {
    const uint32_t binding = position < d.n_buffers ? d.buffers[position]->binding : 0;
    c.arguments.push_back({std::string(static_cast<const char*>(value), size), binding});
    return CL_SUCCESS;
  };
  if (const weft_code code = for_each_argument(d, set, error); code != WEFT_OK) return code;
  q->recording->commands.push_back(std::move(c));
  return WEFT_OK;
}

weft_code make_sequence(weft_device device, const weft_sequence_desc* desc, weft_sequence* out,
                        uint32_t* refused, weft_error* error) {
  std::unique_ptr<weft_sequence_s, void (*)(weft_sequence)> s(new weft_sequence_s{device, {}, {}, {}},
                                                              free_sequence);
  weft_queue_s queue{.device = device, .queue = nullptr, .recording = s.get()};
  for (uint32_t i = 0; i < desc->n_steps; ++i) {
    const weft_sequence_step& step = *desc->steps[i];
    if (step.copy) {
      if (step.copy->bytes) s->commands.push_back({.copy = *step.copy, .name = "a copy"});
      continue;
    }
    weft_launch launch = *step.launch;
    launch.queue = &queue;
    *refused = i;
    if (const weft_code code = launch.plan->kernel->launch(&launch, error); code != WEFT_OK) return code;
  }
  *out = s.release();
  return WEFT_OK;
}

weft_code run_sequence(weft_sequence s, weft_queue q, void* const* handles, uint32_t n, weft_error* error) {
  if (s->commands.empty()) return WEFT_OK;
  const Handles now(handles, handles + n);
  return s->device->command_buffers.clCreateCommandBufferKHR ? run_buffer(*s, q, now, error)
                                                             : run_each(*s, q, now, error);
}

void free_sequence(weft_sequence s) {
  for (const auto& r : s->recordings) release(*s, r);
  release(s->kernels);
  delete s;
}

}  // namespace weft::opencl
