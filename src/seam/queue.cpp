#include "seam/queue.h"

#include "seam/device.h"

namespace weft::seam {

Queue::Queue(Device& device, weft_queue queue) : device_(device), queue_(queue) {
  if (device.ordered()) device.enter(*this);
}
Queue::~Queue() {
  (void)synchronize();  // callers that care about errors have synchronized before
  if (device_.ordered()) device_.leave(*this);
  device_.backend().close_queue(queue_);
}

Status Queue::Turn::status() const {
  if (mine_) return {};
  return invalid("a queue of {} is in use on another thread; open one queue a thread", queue_.device_.name());
}

Status Queue::finish() {
  CError error;
  const weft_code code = device_.backend().synchronize(queue_, error.out());
  launches_.store(false, std::memory_order_relaxed);
  if (device_.ordered()) device_.passed(*this);  // and nobody waits for its uses of memory any more
  return error.status(code);
}

Status Queue::synchronize() {
  const Turn turn(*this);
  WEFT_CHECK(turn.status());
  Status met = finish();
  if (kept_.ok()) return met;
  return std::exchange(kept_, Status());
}

void Queue::drain() {
  const Turn turn(*this);
  if (turn.status().ok()) finish_quietly();
}
void Queue::finish_quietly() {
  Status met = finish();
  if (kept_.ok()) kept_ = std::move(met);
}

bool Queue::has_points() const { return device_.backend().mark != nullptr; }

Result<uint64_t> Queue::mark() {
  const Turn turn(*this);
  WEFT_CHECK(turn.status());
  if (!has_points()) {
    if (device_.ordered()) finish_quietly();
    return ++marked_;
  }
  CError error;
  uint64_t point = 0;
  WEFT_CHECK(error.status(device_.backend().mark(queue_, &point, error.out())).at("marking a queue"));
  return point;
}

Status Queue::wait(Queue& other, uint64_t point) {
  if (!has_points()) return {};
  const Turn turn(*this);
  WEFT_CHECK(turn.status());
  CError error;
  return error.status(device_.backend().wait(queue_, other.queue_, point, error.out()))
      .at("waiting for a queue");
}

Result<uint64_t> Queue::await(uint64_t point, uint64_t nanoseconds) {
  if (!has_points()) return marked_.load();
  CError error;
  uint64_t reached = 0;
  WEFT_CHECK(error.status(device_.backend().await(queue_, point, nanoseconds, &reached, error.out()))
                 .at("awaiting a point"));
  return reached;
}

bool Queue::has_stamps() const { return device_.backend().stamp != nullptr; }

Status Queue::stamp() {
  if (!has_stamps()) return fail(Code::unsupported, "{} has no clock of its own", device_.name());
  const Turn turn(*this);
  WEFT_CHECK(turn.status());
  CError error;
  WEFT_CHECK(error.status(device_.backend().stamp(queue_, error.out())).at("noting a device's time"));
  ++stamps_;
  return {};
}

Result<std::vector<uint64_t>> Queue::read_stamps() {
  const Turn turn(*this);
  WEFT_CHECK(turn.status());
  std::vector<uint64_t> times(std::exchange(stamps_, 0));
  if (times.empty()) return times;
  CError error;
  WEFT_CHECK(error
                 .status(device_.backend().read_stamps(queue_, times.data(),
                                                       static_cast<uint32_t>(times.size()), error.out()))
                 .at("reading a device's times"));
  return times;
}

Status Queue::enqueue(const weft_copy& copy) {
  const Turn turn(*this);
  WEFT_CHECK(turn.status());
  CError error;
  return error.status(device_.backend().copy(queue_, &copy, error.out()));
}

Status Queue::copy_in(const Buffer& to, uint64_t offset, const void* from, uint64_t bytes) {
  WEFT_CHECK(device_.order(*this, to));
  const weft_copy copy{.size = sizeof(weft_copy),
                       .reserved = 0,
                       .source = nullptr,
                       .source_offset = 0,
                       .target = to.handle,
                       .target_offset = offset,
                       .host_source = from,
                       .host_target = nullptr,
                       .bytes = bytes};
  return enqueue(copy);
}

Status Queue::copy_out(void* to, const Buffer& from, uint64_t offset, uint64_t bytes) {
  WEFT_CHECK(device_.order(*this, from));
  const weft_copy copy{.size = sizeof(weft_copy),
                       .reserved = 0,
                       .source = from.handle,
                       .source_offset = offset,
                       .target = nullptr,
                       .target_offset = 0,
                       .host_source = nullptr,
                       .host_target = to,
                       .bytes = bytes};
  return enqueue(copy);
}

Status Queue::copy(const Buffer& to, uint64_t to_offset, const Buffer& from, uint64_t from_offset,
                   uint64_t bytes) {
  WEFT_CHECK(device_.order(*this, from));
  WEFT_CHECK(device_.order(*this, to));
  // Pinned memory may be plain host memory, which has no handle.
  const weft_copy copy{.size = sizeof(weft_copy),
                       .reserved = 0,
                       .source = from.handle,
                       .source_offset = from_offset,
                       .target = to.handle,
                       .target_offset = to_offset,
                       .host_source = from.handle ? nullptr : from.address() + from_offset,
                       .host_target = to.handle ? nullptr : to.address() + to_offset,
                       .bytes = bytes};
  return enqueue(copy);
}

}  // namespace weft::seam
