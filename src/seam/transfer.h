#pragma once
#include "seam/device.h"

namespace weft::seam {

/// Part of a buffer.
struct Region {
  const Buffer& buffer;
  uint64_t offset = 0;
};

/// Copies bytes between two devices, in the order of a queue of each: straight, where one side is host memory
/// that launches have written when they return; else through two pinned pieces, of which one is filled while
/// the other is read. Returns when all has left the source. The caller enters it in the ledger.
Status transfer(Queue& from_queue, Region from, Queue& to_queue, Region to, uint64_t bytes);

}  // namespace weft::seam
