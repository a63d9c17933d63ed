#include "conformance/seam/late.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace weft::conformance {

namespace {
constexpr auto kLate = std::chrono::microseconds(300);
constexpr uint64_t kLeastBytes = 1 << 20, kMostBytes = 64 << 20;
constexpr int kMostTimes = 64;
}  // namespace

weft_copy Late::Idle::copy() const {
  weft_copy c{.size = sizeof c};
  c.source = from, c.target = to, c.bytes = bytes;
  return c;
}

weft_code Late::open_queue(weft_device d, weft_queue* q, weft_error* e) {
  const weft_code code = Wrapped::open_queue(d, q, e);
  if (code != WEFT_OK || !ordered()) return code;
  const std::lock_guard lock(mutex_);
  devices_[*q] = d;
  return idle_.contains(d) ? code : prepare_idle(d, *q, e);
}

// Larger and more copies, until they take long enough. What a first copy costs a device once, such as loading
// a kernel for it, is no lag, so the faster one of two rounds counts.
weft_code Late::prepare_idle(weft_device d, weft_queue q, weft_error* e) {
  const uint64_t most = good().max_buffer ? std::min(good().max_buffer / 4, kMostBytes) : kMostBytes;
  Idle& idle = idle_[d];
  for (idle.bytes = std::min(kLeastBytes, most), idle.times = 1;;) {
    for (void** side : {&idle.from, &idle.to}) {
      if (!*side)
        if (const weft_code code = inner().allocate(d, idle.bytes, side, e); code != WEFT_OK) return code;
    }
    auto fastest = std::chrono::steady_clock::duration::max();
    for (int round = 0; round < 2; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      if (const weft_code code = copy_idle(idle, q, e); code != WEFT_OK) return code;
      if (const weft_code code = inner().synchronize(q, e); code != WEFT_OK) return code;
      fastest = std::min(fastest, std::chrono::steady_clock::now() - begin);
    }
    if (fastest >= kLate || idle.times >= kMostTimes) return WEFT_OK;
    if (idle.bytes == most) {
      idle.times *= 2;
      continue;
    }
    // No more than it needs: devices of many liars live in one process.
    for (void** side : {&idle.from, &idle.to}) inner().free(d, std::exchange(*side, nullptr));
    idle.bytes = std::min(2 * idle.bytes, most);
  }
}

weft_code Late::copy_idle(const Idle& idle, weft_queue q, weft_error* e) {
  const weft_copy c = idle.copy();
  for (int i = 0; i < idle.times; ++i)
    if (const weft_code code = inner().copy(q, &c, e); code != WEFT_OK) return code;
  return WEFT_OK;
}

void Late::close_queue(weft_queue q) {
  {
    const std::lock_guard lock(mutex_);
    devices_.erase(q);
  }
  Wrapped::close_queue(q);
}

void Late::close_device(weft_device d) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = idle_.find(d); at != idle_.end()) {
      for (void* side : {at->second.from, at->second.to}) inner().free(d, side);
      idle_.erase(at);
    }
  }
  Wrapped::close_device(d);
}

Late::Idle Late::idle_of(weft_device d) {
  const std::lock_guard lock(mutex_);
  return idle_[d];
}

weft_code Late::lag(weft_queue q, weft_error* e) {
  Idle idle;
  {
    const std::lock_guard lock(mutex_);
    const auto at = devices_.find(q);
    if (at == devices_.end()) return WEFT_OK;  // inline: nothing is late
    idle = idle_[at->second];
  }
  return copy_idle(idle, q, e);
}

weft_code Late::launch(const weft_launch* l, weft_error* e) {
  const weft_code code = lag(l->queue, e);
  return code == WEFT_OK ? Wrapped::launch(l, e) : code;
}

}  // namespace weft::conformance
