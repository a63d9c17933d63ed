#include <cmath>
#include <utility>

#include "device.hpp"

// The device's clock: events with times.
namespace weft::cuda {
namespace {

Outcome event_for_stamp(Queue& q, gpu::Event* event) {
  if (q.spare_stamps.empty()) return outcome(gpu::create_event(event, gpu::kWithTime), "creating an event");
  *event = q.spare_stamps.back();
  q.spare_stamps.pop_back();
  return Outcome::ok();
}

}  // namespace

weft_code stamp(weft_queue c, weft_error* error) {
  Queue& q = *queue_of(c);
  return on_device(q.device, error, [&]() -> Outcome {
    if (q.captured) return Outcome::fail(WEFT_UNSUPPORTED, "a sequence that is recorded notes no times");
    if (auto settled = settle(q); !settled.good()) return settled;
    gpu::Event event = nullptr;
    if (auto made = event_for_stamp(q, &event); !made.good()) return made;
    auto noted = outcome(gpu::record_event(event, q.stream), "noting the time");
    (noted.good() ? q.stamps : q.spare_stamps).push_back(event);
    return noted;
  });
}

weft_code read_stamps(weft_queue c, uint64_t* nanoseconds, uint32_t n, weft_error* error) {
  Queue& q = *queue_of(c);
  return on_device(q.device, error, [&]() -> Outcome {
    const auto stamps = std::exchange(q.stamps, {});
    q.spare_stamps.insert(q.spare_stamps.end(), stamps.begin(), stamps.end());
    if (stamps.size() != n)
      return Outcome::fail(WEFT_INVALID_ARGUMENT, "{} times are asked for, {} were noted", n, stamps.size());
    if (auto ended = wait_for_stream(q); !ended.good()) return ended;
    // Each from the one before it: a float has 24 bits, of milliseconds.
    for (uint32_t i = 0; i < n; ++i) {
      float milliseconds = 0;
      if (i) WEFT_GPU_TRY(gpu::milliseconds_between(&milliseconds, stamps[i - 1], stamps[i]));
      nanoseconds[i] = (i ? nanoseconds[i - 1] : 0) +
                       static_cast<uint64_t>(std::llround(1e6 * std::fmax(milliseconds, 0)));
    }
    return Outcome::ok();
  });
}

}  // namespace weft::cuda
