#include "runtime/slabs.h"

#include <algorithm>

namespace weft::runtime {

Result<seam::BufferRef> Slabs::take(seam::Device& device, uint64_t bytes) {
  if (!device.host_memory() || bytes > kMostShared) return device.allocate_unpooled(bytes);
  const uint64_t room = (bytes + kAlign - 1) / kAlign * kAlign;
  if (!slab_ || device_ != &device || used_ + room > slab_->bytes) {
    WEFT_TRY(slab_, device.allocate_unpooled(std::max(room, std::min(kSlab, wanted_))));
    device_ = &device, used_ = 0;
  }
  DLTensor part{};
  part.data = static_cast<std::byte*>(slab_->handle) + used_;
  part.device = {kDLCPU, 0};
  used_ += room;
  wanted_ -= std::min(wanted_, room);
  return device.import_memory(part, bytes, [slab = slab_] {});
}

}  // namespace weft::runtime
