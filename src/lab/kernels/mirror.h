#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lab/kernels/turn.h"
#include "seam/queue.h"

// The lab's memory on a device whose memory is not the host's.
namespace weft::lab {

/// A copy of the lab's memory, all of it, so guard zones and spoilt results lie there as they do in the
/// original. What is enqueued goes to one queue, that of the kernel.
class Mirror {
 public:
  /// `original` and `queue` outlive it. Errors: out_of_memory.
  static Result<std::unique_ptr<Mirror>> create(std::span<std::byte> original, seam::Queue& queue);
  Mirror(const Mirror&) = delete;

  /// Writes all of its memory once, so that a process has it from now on. Also that which a long run wants.
  Status touch();

  /// A tensor that lies `at` bytes into the memory.
  weft_tensor tensor(weft_tensor host, uint64_t at) const;

  /// Nanoseconds that the launches took by the device's clock, or by the host's where the device has none.
  /// The device begins with what the original holds. Each launch comes after `each` of the edits, which are
  /// not counted; the sample of the launch is kept in the first of them. The original is as the device's
  /// memory was right behind the last launch. `cold`: caches are flushed before each launch.
  Result<uint64_t> run(std::span<Edit> edits, size_t each, const std::function<Status()>& launch, bool cold);

 private:
  Mirror(std::span<std::byte> original, seam::Queue& queue);
  using Launch = std::function<Status()>;
  Status edit(std::span<const Edit> edits, size_t number);
  Status keep_sample(std::span<const Edit> burst, size_t each, size_t launch, size_t number);
  Status make_scratch();
  Status lead(uint64_t bytes);
  Result<std::optional<uint64_t>> burst(std::span<const Edit> edits, size_t each, const Launch& launch,
                                        bool cold);
  Result<uint64_t> timed_by_host(std::span<const Edit> edits, size_t each, const Launch& launch, bool cold);
  Status read_samples(std::span<Edit> edits, size_t each);

  std::span<std::byte> original_;
  seam::Queue& queue_;
  seam::BufferRef copy_, before_, snapshot_, scratch_, samples_, edits_;
  size_t sampled_ = 0;                   // launches of this run
  std::vector<uint64_t> sample_places_;  // bytes into the memory, by launch
  uint64_t half_ = 0;                    // bytes of a half of the scratch memory
  uint64_t lead_ = 1 << 20;              // bytes that are copied before a burst
  size_t burst_;                         // launches that are enqueued while the device is busy
};

}  // namespace weft::lab
