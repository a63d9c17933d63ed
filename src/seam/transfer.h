#pragma once
#include "seam/device.h"

namespace weft::seam {

/// Part of a buffer.
struct Region {
  const Buffer& buffer;
  uint64_t offset = 0;
};

/// Copies bytes between two devices, in the order of a queue of each: directly where one side is host memory
/// of an inline queue, or where a backend has both devices and one reaches the other's; else through two
/// pinned buffers, one filled while the other is drained. Returns when the source has been read. The caller
/// enters it in the ledger.
Status transfer(Queue& from_queue, Region from, Queue& to_queue, Region to, uint64_t bytes);

}  // namespace weft::seam
