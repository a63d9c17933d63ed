#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>

#include "weft/backend.hpp"

// Memory of a device in blocks of any size, cut from segments that the driver gave and that are kept.
//
// The rule of reuse: a block that is released may be given out again at once, to any queue. The seam's `free`
// comes after the host has waited for what it enqueued on the buffer, so no stream's order is left to keep.
// The host's pool above this one (src/seam/pool.cpp) does keep an order, that of one queue, and only gives
// buffers of one size class out again; what it has no class for, or no room, comes here: arenas, buffers of
// more than 512 MiB, and sizes that differ from step to step.
namespace weft::cuda {

class Blocks {
 public:
  /// Where segments come from, and go to. `get` answers null where there is no memory left.
  struct Source {
    std::function<void*(uint64_t bytes)> get;
    std::function<void(void*)> put;
  };
  struct Statistics {
    uint64_t used = 0, most_used = 0;  ///< bytes of blocks that were given out
    uint64_t held = 0, most_held = 0;  ///< bytes of segments
    uint64_t largest = 0;              ///< free block
    uint64_t given = 0;                ///< blocks, since the beginning
    uint64_t segments = 0;             ///< that the source was asked for, since the beginning
  };

  /// Keeps at most `most_kept` bytes of segments that nobody uses. Where `cut` is false, each block is a
  /// segment of its own and is not kept: for tools that look for accesses beside a block.
  Blocks(Source source, uint64_t most_kept, bool cut = true);
  Blocks(const Blocks&) = delete;
  /// Gives all segments back, used or not.
  ~Blocks();

  /// Null: the source has no memory left, also after what nobody uses was given back to it.
  void* allocate(uint64_t bytes);
  /// False: it is none of these.
  bool release(void* at);
  /// Gives the segments that nobody uses back.
  void trim();
  /// Forgets everything, and gives nothing back: the source has failed.
  void abandon();
  Statistics statistics() const;

 private:
  struct Block;
  struct Smaller {
    bool operator()(const Block* a, const Block* b) const;
  };
  Block* add_segment(uint64_t wanted);
  Block* find(uint64_t bytes);
  void cut(Block& block, uint64_t bytes);
  Block& merged(Block& block, Block& behind);
  void drop(Block& whole);
  void drop_unused(uint64_t keep);

  const Source source_;
  const uint64_t most_kept_;
  const bool cut_;
  mutable std::mutex mutex_;  // Guards what follows.
  std::unordered_map<void*, std::unique_ptr<Block>> blocks_;
  std::set<Block*, Smaller> free_;
  uint64_t unused_ = 0;  // bytes of segments that nobody uses
  Statistics counted_;
};

}  // namespace weft::cuda
