#pragma once
#include <functional>

#include "link/schedule.h"

namespace weft::runtime {

/// Which of a schedule's packed weights may be staged, by index of Schedule::packed: one step reads it and no
/// other packed weight, on a device whose launches have run when they return, in memory of the host. None
/// where together they are so small that staging saves nothing.
std::vector<bool> stageable(const link::Schedule& schedule);

/// Packs weights right before the steps that read them, all into the same memory, which stays in the caches.
/// A program that runs once takes no memory for all of its packed weights and does not wait for them to come
/// back from it. Kernels read the same bytes as later, so the results are the same.
class Staging {
 public:
  using Pack = std::function<Status(const link::PackedWeight& want, const seam::Buffer& to)>;

  /// `staged`: the slots of these weights. The schedule outlives this.
  Staging(const link::Schedule& schedule, std::span<const int32_t> staged, Pack pack);
  /// Allocates the memory.
  Status open();
  seam::Buffer& memory() const { return *memory_.get(); }
  /// Packs what the step reads, if that is not there already.
  Status before(size_t step);

 private:
  const link::Schedule& schedule_;
  const Pack pack_;
  std::vector<int32_t> wanted_;  // by step: index of Schedule::packed, or -1
  uint64_t bytes_ = 0;
  seam::BufferRef memory_;
  int32_t holds_ = -1;  // index of Schedule::packed
};

}  // namespace weft::runtime
