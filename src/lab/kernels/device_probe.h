#pragma once
#include <array>

#include "lab/kernels/text_module.h"
#include "seam/queue.h"

namespace weft::lab {

/// How fast a device computes now, by loops in its own language between two stamps of its clock.
class DeviceProbe {
 public:
  /// `queue` outlives it. Errors: unsupported where the device has no clock, or compiles none of the
  /// languages that the loops are written in.
  static Result<std::unique_ptr<DeviceProbe>> create(seam::Queue& queue);

  /// Multiply-adds of f32 a nanosecond, each of which waits for the one before: the clock in GHz by the
  /// cycles that one takes. Takes a tenth of a millisecond of the device.
  Result<double> chain();
  /// Gflop/s of f32 multiply-adds in registers, by all of the device; a multiply-add is two.
  Result<double> all_units();

 private:
  explicit DeviceProbe(seam::Queue& queue) : queue_(queue) {}
  Result<uint64_t> nanoseconds(const TextModule& loop, uint64_t items, uint64_t group, int32_t steps);

  seam::Queue& queue_;
  std::unique_ptr<TextModule> one_, many_;
  seam::BufferRef results_;
  uint64_t items_ = 0, group_ = 0;  // of all_units()
};

}  // namespace weft::lab
