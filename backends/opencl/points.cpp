#include <chrono>
#include <thread>

#include "device.h"

// Points: the event of a marker each, kept until it is known to be complete.
namespace weft::opencl {
namespace {

bool has_ended(cl_event event) {
  cl_int status = CL_COMPLETE;
  library().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return status <= CL_COMPLETE;  // below it: it failed
}

/// Drops the points that were reached: the last complete one and all before it, whatever their own events
/// say yet. Needs the queue's mutex.
void advance(weft_queue_s& q) {
  size_t ended = q.points.size();
  while (ended > 0 && !has_ended(q.points[ended - 1].second)) --ended;
  for (; ended > 0; --ended) {
    q.reached = q.points.front().first;
    library().clReleaseEvent(q.points.front().second);
    q.points.pop_front();
  }
}

/// The event of a point, for the caller to release; null if it was reached.
cl_event event_of(weft_queue_s& q, uint64_t point) {
  const std::lock_guard lock(q.mutex);
  advance(q);
  for (const auto& [number, event] : q.points)
    if (number >= point) {
      library().clRetainEvent(event);
      return event;
    }
  return nullptr;
}

void await_event(cl_event event, uint64_t nanoseconds) {
  using namespace std::chrono;
  if (nanoseconds == UINT64_MAX) {
    library().clWaitForEvents(1, &event);  // synchronize reports its failure
    return;
  }
  const auto begin = steady_clock::now();
  while (!has_ended(event) && static_cast<uint64_t>((steady_clock::now() - begin).count()) < nanoseconds)
    std::this_thread::sleep_for(microseconds(20));
}

}  // namespace

weft_code mark(weft_queue q, uint64_t* point, weft_error* error) {
  cl_event event = nullptr;
  cl_int code = library().clEnqueueMarkerWithWaitList(q->queue, 0, nullptr, &event);
  if (code == CL_SUCCESS) code = library().clFlush(q->queue);
  if (code != CL_SUCCESS)
    return fail(error, WEFT_DEVICE, "opencl:%u: marking a queue: %s", q->device->ordinal,
                code_text(code).c_str());
  const std::lock_guard lock(q->mutex);
  advance(*q);
  *point = ++q->marked;
  q->points.emplace_back(*point, event);
  return WEFT_OK;
}

weft_code wait(weft_queue q, weft_queue other, uint64_t point, weft_error* error) {
  const cl_event event = event_of(*other, point);
  if (!event) return WEFT_OK;
  const cl_int code = library().clEnqueueBarrierWithWaitList(q->queue, 1, &event, nullptr);
  library().clReleaseEvent(event);
  if (code == CL_SUCCESS) return WEFT_OK;
  return fail(error, WEFT_DEVICE, "opencl:%u: waiting for a queue: %s", q->device->ordinal,
              code_text(code).c_str());
}

weft_code await(weft_queue q, uint64_t point, uint64_t nanoseconds, uint64_t* reached, weft_error*) {
  if (const cl_event event = nanoseconds ? event_of(*q, point) : nullptr) {
    await_event(event, nanoseconds);
    library().clReleaseEvent(event);
  }
  const std::lock_guard lock(q->mutex);
  advance(*q);
  *reached = q->reached;
  return WEFT_OK;
}

}  // namespace weft::opencl
