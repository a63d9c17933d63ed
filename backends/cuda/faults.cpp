#include <chrono>
#include <cstdlib>
#include <thread>

#include "device.hpp"

// A device that has failed: a kernel read where nothing is, or does not end. Nothing that is asked of the
// driver succeeds after that, in this process; so the first error is kept, and is the answer to every call.
namespace weft::cuda {

namespace {

/// A call that has nothing to do with what was enqueued fails, too.
bool answers() {
  size_t unused = 0;
  return gpu::memory_info(&unused, &unused) == gpu::kSuccess;
}

/// The device has failed: all queues say what they were given last. Without its mutex.
Outcome fail(Device& d, const std::string& why) {
  const std::lock_guard lock(d.mutex);
  if (d.failed) return Outcome::fail(WEFT_DEVICE, "{}", d.failure);
  std::string pending;
  for (Queue* q : d.queues) {
    const std::unique_lock collecting(q->collecting, std::try_to_lock);  // its owner may hang in the driver
    const std::string text = collecting ? q->recent.text() : "";
    if (!text.empty()) pending += (pending.empty() ? "" : "; ") + text;
  }
  d.failure = name_of(d) + " can't be used any more in this process: " + why;
  if (!pending.empty()) d.failure += "; launched since it was last waited for: " + pending;
  if (!pending.empty() && !blocking()) d.failure += "; with WEFT_GPU_BLOCKING=1 only the one that failed";
  d.blocks.abandon();
  d.failed.store(true, std::memory_order_release);
  return Outcome::fail(WEFT_DEVICE, "{}", d.failure);
}

}  // namespace

bool blocking() {
  static const bool is = [] {
    const char* text = std::getenv("WEFT_GPU_BLOCKING");
    return text && std::string_view(text) != "0";
  }();
  return is;
}

double time_limit() {
  static const double seconds = [] {
    const char* text = std::getenv("WEFT_GPU_TIMEOUT");
    return text ? std::max(0.0, std::atof(text)) : 0.0;
  }();
  return seconds;
}

std::string name_of(const Device& d) { return backend::format("{}:{}", gpu::kKind, d.ordinal); }

Outcome failure_of(Device& d) {
  const std::lock_guard lock(d.mutex);
  return Outcome::fail(WEFT_DEVICE, "{}", d.failure);
}

Outcome judged(Device& d, Outcome error) { return answers() ? std::move(error) : fail(d, error.text); }

Outcome overdue(Device& d) {
  return fail(d, backend::format("a queue did not end within {} s (WEFT_GPU_TIMEOUT)", time_limit()));
}

void note(Queue& q, std::string_view kernel) {
  const std::lock_guard lock(q.collecting);
  q.recent.add(kernel);
}

Outcome launched(Queue& q) {
  if (!blocking() || q.captured) [[likely]]
    return Outcome::ok();
  if (auto settled = settle(q); !settled.good()) return settled;
  return wait_for_stream(q);
}

Outcome wait_for_stream(Queue& q) {
  using namespace std::chrono;
  uint64_t launches = 0;
  {
    const std::lock_guard lock(q.collecting);
    launches = q.recent.count();
  }
  if (time_limit() == 0) {
    auto ended = outcome(gpu::synchronize_stream(q.stream), "waiting for a queue");
    if (!ended.good()) return ended;
  } else {
    const auto begin = steady_clock::now();
    gpu::Error state = gpu::kNotReady;
    while ((state = gpu::query_stream(q.stream)) == gpu::kNotReady) {
      const double waited = duration<double>(steady_clock::now() - begin).count();
      if (waited > time_limit()) return overdue(q.device);
      waited < 1e-3 ? std::this_thread::yield() : std::this_thread::sleep_for(microseconds(50));
    }
    if (auto ended = outcome(state, "waiting for a queue"); !ended.good()) return ended;
  }
  q.staged = 0;
  const std::lock_guard lock(q.collecting);
  q.recent.passed(launches);
  return Outcome::ok();
}

}  // namespace weft::cuda
