#include <chrono>
#include <memory>
#include <thread>

#include "collected.hpp"
#include "device.hpp"

// Streams, the points on them, and copies.
namespace weft::cuda {

using backend::guarded;

namespace {

bool has_ended(cudaEvent_t event) { return cudaEventQuery(event) != cudaErrorNotReady; }

// Drops the points that were reached. Needs the queue's mutex.
void advance(Queue& q) {
  while (!q.points.empty() && has_ended(q.points.front().second)) {
    q.reached = q.points.front().first;
    q.spare.push_back(q.points.front().second);
    q.points.pop_front();
  }
}

// The event of the first point at or after this one; null if it was reached.
cudaEvent_t event_of(Queue& q, uint64_t point) {
  advance(q);
  for (const auto& [number, event] : q.points)
    if (number >= point) return event;
  return nullptr;
}

Outcome event_for_mark(Queue& q, cudaEvent_t* event) {
  if (!q.spare.empty()) {
    *event = q.spare.back();
    q.spare.pop_back();
    return Outcome::ok();
  }
  return outcome(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "cudaEventCreate");
}

}  // namespace

Queue::Queue(Device& d, cudaStream_t s, bool is_imported) : device(d), stream(s), imported(is_imported) {}
Queue::~Queue() = default;

Outcome settle_locked(Queue& q) {
  if (!q.collected) return Outcome::ok();
  const std::unique_ptr<Collected> all = std::move(q.collected);
  return all->start(q);
}

Outcome settle(Queue& q) {
  const std::lock_guard lock(q.collecting);
  return settle_locked(q);
}

namespace {

// A queue of a stream, with memory of its own.
Outcome make_queue(Device& d, cudaStream_t stream, bool imported, weft_queue* out) {
  auto q = std::make_unique<Queue>(d, stream, imported);
  WEFT_CUDA_TRY(cudaMalloc(reinterpret_cast<void**>(&q->partials), kQueueMemory * sizeof(float)));
  WEFT_CUDA_TRY(cudaMemset(q->partials, 0, kQueueMemory * sizeof(float)));
  *out = reinterpret_cast<weft_queue>(q.release());
  return Outcome::ok();
}

}  // namespace

weft_code open_queue(weft_device d, weft_queue* out, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    WEFT_CUDA_TRY(cudaSetDevice(device_of(d)->ordinal));
    cudaStream_t stream = nullptr;
    WEFT_CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    auto made = make_queue(*device_of(d), stream, false, out);
    if (!made.good()) cudaStreamDestroy(stream);
    return made;
  });
}

weft_code import_queue(weft_device d, void* native, weft_queue* out, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    int device = -1;
    WEFT_CUDA_TRY(cudaStreamGetDevice(static_cast<cudaStream_t>(native), &device));
    if (device != device_of(d)->ordinal)
      return Outcome::fail(WEFT_INVALID_ARGUMENT, "the stream is of cuda:{}, not of cuda:{}", device,
                           device_of(d)->ordinal);
    WEFT_CUDA_TRY(cudaSetDevice(device));
    return make_queue(*device_of(d), static_cast<cudaStream_t>(native), true, out);
  });
}

void close_queue(weft_queue c) {
  const std::unique_ptr<Queue> q(queue_of(c));
  cudaSetDevice(q->device.ordinal);
  if (!settle(*q).good()) cudaGetLastError();  // there is nobody left to tell
  cudaStreamSynchronize(q->stream);
  for (const auto& [point, event] : q->points) cudaEventDestroy(event);
  for (const cudaEvent_t event : q->spare) cudaEventDestroy(event);
  cudaFree(q->partials);
  if (!q->imported) cudaStreamDestroy(q->stream);
}

weft_code mark(weft_queue c, uint64_t* point, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    Queue& q = *queue_of(c);
    WEFT_CUDA_TRY(cudaSetDevice(q.device.ordinal));
    if (auto settled = settle(q); !settled.good()) return settled;
    const std::lock_guard lock(q.mutex);
    advance(q);
    cudaEvent_t event = nullptr;
    if (auto made = event_for_mark(q, &event); !made.good()) return made;
    if (auto recorded = outcome(cudaEventRecord(event, q.stream), "cudaEventRecord"); !recorded.good())
      return q.spare.push_back(event), recorded;
    *point = ++q.marked;
    q.points.emplace_back(*point, event);
    return Outcome::ok();
  });
}

weft_code wait(weft_queue c, weft_queue other, uint64_t point, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    Queue& of = *queue_of(other);
    WEFT_CUDA_TRY(cudaSetDevice(of.device.ordinal));
    const std::lock_guard lock(of.mutex);  // or the event might be recorded again in between
    const cudaEvent_t event = event_of(of, point);
    if (!event) return Outcome::ok();
    if (auto settled = settle(*queue_of(c)); !settled.good()) return settled;
    return outcome(cudaStreamWaitEvent(queue_of(c)->stream, event, 0), "cudaStreamWaitEvent");
  });
}

weft_code await(weft_queue c, uint64_t point, uint64_t nanoseconds, uint64_t* reached, weft_error*) {
  using namespace std::chrono;
  Queue& q = *queue_of(c);
  cudaSetDevice(q.device.ordinal);
  const auto begin = steady_clock::now();
  for (;;) {
    {
      const std::lock_guard lock(q.mutex);
      advance(q);
      *reached = q.reached;
    }
    if (*reached >= point || static_cast<uint64_t>((steady_clock::now() - begin).count()) >= nanoseconds)
      return WEFT_OK;
    std::this_thread::sleep_for(microseconds(5));
  }
}

Outcome enqueue_copy(const weft_copy& c, cudaStream_t stream) {
  if (c.bytes == 0) return Outcome::ok();
  const void* from = c.source ? static_cast<const char*>(c.source) + c.source_offset : c.host_source;
  void* to = c.target ? static_cast<char*>(c.target) + c.target_offset : c.host_target;
  WEFT_CUDA_TRY(cudaMemcpyAsync(to, from, c.bytes, cudaMemcpyDefault, stream));
  return Outcome::ok();
}

weft_code copy(weft_queue c, const weft_copy* what, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    Queue& q = *queue_of(c);
    WEFT_CUDA_TRY(cudaSetDevice(q.device.ordinal));
    if (auto settled = settle(q); !settled.good()) return settled;
    if (auto enqueued = enqueue_copy(*what, q.stream); !enqueued.good()) return enqueued;
    if (what->source && what->target) return Outcome::ok();
    return outcome(cudaStreamSynchronize(q.stream), "a copy of host memory");
  });
}

weft_code synchronize(weft_queue c, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    Queue& q = *queue_of(c);
    WEFT_CUDA_TRY(cudaSetDevice(q.device.ordinal));
    if (auto settled = settle(q); !settled.good()) return settled;
    return outcome(cudaStreamSynchronize(q.stream), "cudaStreamSynchronize");
  });
}

}  // namespace weft::cuda
