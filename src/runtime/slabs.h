#pragma once
#include "seam/device.h"

namespace weft::runtime {

/// Memory for many small buffers that are filled at once, such as packed weights. On devices whose memory is
/// the host's they share large buffers, which consist of large pages: a hundredth of the page faults, and
/// kernels miss fewer translations of addresses.
class Slabs {
 public:
  /// `wanted`: bytes of all buffers that will be taken; fewer may be.
  explicit Slabs(uint64_t wanted) : wanted_(wanted) {}

  /// Uninitialised. A slab is freed with the last buffer in it.
  Result<seam::BufferRef> take(seam::Device& device, uint64_t bytes);

 private:
  static constexpr uint64_t kAlign = 64, kMostShared = 8 << 20, kSlab = 32 << 20;

  uint64_t wanted_;
  seam::Device* device_ = nullptr;  // of the slab
  seam::BufferRef slab_;
  uint64_t used_ = 0;
};

}  // namespace weft::runtime
