#include <chrono>
#include <map>
#include <vector>

#include "conformance/liars/liar.h"
#include "seam/device.h"

// Times of a device that are others than its own.
namespace weft::conformance {
namespace {

// Notes the host's time when a stamp is enqueued.
class StampsWhenAsked : public DrawnLate {
 public:
  using DrawnLate::DrawnLate;
  weft_code stamp(weft_queue q, weft_error*) override {
    stamps_[q].push_back(std::chrono::steady_clock::now());
    return WEFT_OK;
  }
  weft_code read_stamps(weft_queue q, uint64_t* nanoseconds, uint32_t n, weft_error* e) override {
    const auto stamps = std::exchange(stamps_[q], {});
    for (uint32_t i = 0; i < n; ++i)
      nanoseconds[i] = static_cast<uint64_t>(std::chrono::nanoseconds(stamps[i] - stamps[0]).count());
    return DrawnLate::synchronize(q, e);
  }

 private:
  std::map<weft_queue, std::vector<std::chrono::steady_clock::time_point>> stamps_;
};

// Counts in other units than nanoseconds: ticks of a clock of `per_tick` of them.
class StampsInTicks : public DrawnLate {
 public:
  using DrawnLate::DrawnLate;
  weft_code read_stamps(weft_queue q, uint64_t* nanoseconds, uint32_t n, weft_error* e) override {
    const weft_code code = DrawnLate::read_stamps(q, nanoseconds, n, e);
    for (uint32_t i = 0; i < n; ++i) nanoseconds[i] /= per_tick_;
    return code;
  }

 private:
  const uint64_t per_tick_ = between(random_, 2, 1000);
};

const char* lacks_stamps(seam::Device& good) {
  return good.backend().stamp ? lacks_an_ordered_queue(good) : "it has no clock of its own";
}

constexpr Liar kStampsLiars[] = {
    {"liar_stamps_when_asked", "far", "notes the time when a stamp is asked for", "stamps_tell_the_time",
     make_liar<StampsWhenAsked>, lacks_stamps},
    {"liar_stamps_in_ticks", "far", "gives its clock's ticks for nanoseconds", "stamps_tell_the_time",
     make_liar<StampsInTicks>, lacks_stamps},
};

}  // namespace

Liars stamps_liars() { return kStampsLiars; }

}  // namespace weft::conformance
