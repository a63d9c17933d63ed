#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "chain.hpp"

// Streams, the points on them, and copies.
namespace weft::cuda {

namespace {

// Drops the points that were reached. Needs the queue's mutex. On a device that has failed they all are.
void advance(Queue& q) {
  while (!q.points.empty()) {
    const Queue::Point& first = q.points.front();
    const gpu::Error state = q.device.failed ? gpu::kSuccess : gpu::query_event(first.event);
    if (state == gpu::kNotReady) return;
    if (state == gpu::kSuccess && !q.device.failed) q.launches_reached = first.launches;
    q.reached = first.number;
    q.spare.push_back(first.event);
    q.points.pop_front();
  }
}

// The event of the first point at or after this one; null if it was reached.
gpu::Event event_of(Queue& q, uint64_t point) {
  advance(q);
  for (const Queue::Point& p : q.points)
    if (p.number >= point) return p.event;
  return nullptr;
}

Outcome event_for_mark(Queue& q, gpu::Event* event) {
  if (!q.spare.empty()) {
    *event = q.spare.back();
    q.spare.pop_back();
    return Outcome::ok();
  }
  return outcome(gpu::create_event(event, gpu::kWithoutTime), "creating an event");
}

}  // namespace

Queue::Queue(Device& d, gpu::Stream s, bool is_imported) : device(d), stream(s), imported(is_imported) {}
Queue::~Queue() = default;

Outcome settle_locked(Queue& q) {
  if (q.collected.empty()) return Outcome::ok();
  const auto all = q.collected.take();
  ++q.settled;
  Outcome first = Outcome::ok();
  for (const auto& work : all)
    if (auto told = work->start(q); !told.good() && first.good()) first = std::move(told);
  return first;
}

Outcome launch_chain(Queue& q) { return q.chain && !q.chain->empty() ? q.chain->launch(q) : Outcome::ok(); }

Outcome settle(Queue& q, std::string_view next) {
  const std::lock_guard lock(q.collecting);
  auto settled = settle_locked(q);
  if (settled.good()) settled = launch_chain(q);
  if (settled.good() && !next.empty()) q.recent.add(next);
  return settled;
}

Outcome write_now(void* to, const void* from, size_t bytes) {
  gpu::Stream stream = nullptr;  // of its own, for that of a queue may be recording
  WEFT_GPU_TRY(gpu::create_stream(&stream, gpu::kUnordered));
  auto written =
      outcome(gpu::copy_async(to, from, bytes, gpu::kCopyByAddress, stream), "writing to a device");
  if (written.good()) written = outcome(gpu::synchronize_stream(stream), "writing to a device");
  gpu::destroy_stream(stream);
  return written;
}

Outcome allocate_partials(Device& d, size_t queues, float** partials) {
  *partials = static_cast<float*>(d.blocks.allocate(queues * kQueueMemory * sizeof(float)));
  if (!*partials) return Outcome::fail(WEFT_OUT_OF_MEMORY, "no memory for the sums of {} queues", queues);
  static constexpr int kZeros[kCounters] = {};
  Outcome zeroed = Outcome::ok();
  for (size_t i = 0; i < queues && zeroed.good(); ++i)
    zeroed = write_now(*partials + i * kQueueMemory + kPartials, kZeros, sizeof kZeros);
  return zeroed;
}

namespace {

// A queue of a stream, with memory of its own.
Outcome make_queue(Device& d, gpu::Stream stream, bool imported, weft_queue* out) {
  auto q = std::make_unique<Queue>(d, stream, imported);
  if (auto made = allocate_partials(d, 1, &q->partials); !made.good()) return made;
  const std::lock_guard lock(d.mutex);
  d.queues.insert(q.get());
  *out = reinterpret_cast<weft_queue>(q.release());
  return Outcome::ok();
}

}  // namespace

weft_code open_queue(weft_device d, weft_queue* out, weft_error* error) {
  return on_device(*device_of(d), error, [&]() -> Outcome {
    gpu::Stream stream = nullptr;
    WEFT_GPU_TRY(gpu::create_stream(&stream, gpu::kUnordered));
    auto made = make_queue(*device_of(d), stream, false, out);
    if (!made.good()) gpu::destroy_stream(stream);
    return made;
  });
}

weft_code import_queue(weft_device c, void* native, weft_queue* out, weft_error* error) {
  Device& d = *device_of(c);
  return on_device(d, error, [&]() -> Outcome {
    int device = -1;
    WEFT_GPU_TRY(gpu::device_of_stream(static_cast<gpu::Stream>(native), &device));
    if (device != d.ordinal)
      return Outcome::fail(WEFT_INVALID_ARGUMENT, "the stream is of {}:{}, not of {}", gpu::kKind, device,
                           name_of(d));
    return make_queue(d, static_cast<gpu::Stream>(native), true, out);
  });
}

void close_queue(weft_queue c) {
  const std::unique_ptr<Queue> q(queue_of(c));
  Device& d = q->device;
  if (!d.failed) {
    (void)make_current(d);
    Outcome ended = settle(*q);
    if (ended.good()) ended = wait_for_stream(*q);
    if (!ended.good()) ended = judged(d, std::move(ended));
    if (!ended.good() && host() && host()->log) host()->log(WEFT_LOG_ERROR, ended.text.c_str());
  }
  {
    const std::lock_guard lock(d.mutex);
    d.queues.erase(q.get());
  }
  if (d.failed) return;  // what it held is gone, or can't be waited for
  for (const Queue::Point& p : q->points) gpu::destroy_event(p.event);
  for (const auto* events : {&q->spare, &q->stamps, &q->spare_stamps})
    for (const gpu::Event event : *events) gpu::destroy_event(event);
  d.blocks.release(q->partials);
  if (q->staging) gpu::release_host(q->staging);
  if (!q->imported) gpu::destroy_stream(q->stream);
}

weft_code mark(weft_queue c, uint64_t* point, weft_error* error) {
  Queue& q = *queue_of(c);
  return on_device(q.device, error, [&]() -> Outcome {
    if (auto settled = settle(q); !settled.good()) return settled;
    const std::lock_guard lock(q.mutex);
    advance(q);
    uint64_t launches = 0;
    {
      const std::lock_guard collecting(q.collecting);
      q.recent.passed(q.launches_reached), launches = q.recent.count();
    }
    gpu::Event event = nullptr;
    if (auto made = event_for_mark(q, &event); !made.good()) return made;
    if (auto recorded = outcome(gpu::record_event(event, q.stream), "marking a queue"); !recorded.good())
      return q.spare.push_back(event), recorded;
    *point = ++q.marked;
    q.points.push_back({*point, event, launches});
    return Outcome::ok();
  });
}

weft_code wait(weft_queue c, weft_queue other, uint64_t point, weft_error* error) {
  Queue &q = *queue_of(c), &of = *queue_of(other);
  return on_device(q.device, error, [&]() -> Outcome {
    if (auto settled = settle(q); !settled.good()) return settled;
    const std::lock_guard lock(of.mutex);  // or the event might be recorded again in between
    const gpu::Event event = event_of(of, point);
    if (!event) return Outcome::ok();
    return outcome(gpu::wait_for_event(q.stream, event, 0), "waiting for another queue");
  });
}

weft_code await(weft_queue c, uint64_t point, uint64_t nanoseconds, uint64_t* reached, weft_error* error) {
  using namespace std::chrono;
  Queue& q = *queue_of(c);
  (void)make_current(q.device);
  const auto begin = steady_clock::now();
  for (;;) {
    {
      const std::lock_guard lock(q.mutex);
      advance(q);
      *reached = q.reached;
    }
    const duration<double> waited = steady_clock::now() - begin;
    if (*reached >= point || waited.count() * 1e9 >= static_cast<double>(nanoseconds)) return WEFT_OK;
    if (time_limit() > 0 && waited.count() > time_limit())
      return backend::guarded(error, [&] { return overdue(q.device); });
    std::this_thread::sleep_for(microseconds(5));
  }
}

Outcome enqueue_copy(const weft_copy& c, gpu::Stream stream) {
  if (c.bytes == 0) return Outcome::ok();
  const void* from = c.source ? static_cast<const char*>(c.source) + c.source_offset : c.host_source;
  void* to = c.target ? static_cast<char*>(c.target) + c.target_offset : c.host_target;
  return outcome(gpu::copy_async(to, from, c.bytes, gpu::kCopyByAddress, stream), "copying");
}

namespace {

// For a copy: what a launch before it did is for the next synchronize, where the device can still be used.
Outcome wait_for_copy(Queue& q) {
  Outcome ended = wait_for_stream(q);
  if (!ended.good()) ended = judged(q.device, std::move(ended));
  if (!ended.good() && !q.device.failed) q.kept = std::exchange(ended, {});
  return ended;
}

// A small piece of the host's memory, which the caller may change as soon as this returns.
Outcome stage(Queue& q, const weft_copy& what) {
  if (!q.staging) WEFT_GPU_TRY(gpu::allocate_host(&q.staging, kStaging));
  if (q.staged + what.bytes > kStaging) {
    if (auto ended = wait_for_copy(q); !ended.good()) return ended;
    q.staged = 0;
  }
  weft_copy staged = what;
  staged.host_source = std::memcpy(static_cast<char*>(q.staging) + q.staged, what.host_source, what.bytes);
  q.staged += what.bytes;
  return enqueue_copy(staged, q.stream);
}

}  // namespace

weft_code copy(weft_queue c, const weft_copy* what, weft_error* error) {
  Queue& q = *queue_of(c);
  return on_device(q.device, error, [&]() -> Outcome {
    if (auto settled = settle(q); !settled.good()) return settled;
    if (!what->source && what->target && what->bytes <= kStagedPiece) return stage(q, *what);
    const bool waits = !what->source || !what->target;
    // The driver copies from and to memory that is not pinned on the caller's thread, without limit of time.
    if (waits && time_limit() > 0)
      if (auto ended = wait_for_copy(q); !ended.good()) return ended;
    if (auto enqueued = enqueue_copy(*what, q.stream); !enqueued.good()) return enqueued;
    return waits ? wait_for_copy(q) : Outcome::ok();
  });
}

weft_code synchronize(weft_queue c, weft_error* error) {
  Queue& q = *queue_of(c);
  return on_device(q.device, error, [&]() -> Outcome {
    if (auto settled = settle(q); !settled.good()) return settled;
    auto ended = wait_for_stream(q);
    Outcome first = std::exchange(q.kept, {});
    return first.good() ? std::move(ended) : std::move(first);
  });
}

}  // namespace weft::cuda
