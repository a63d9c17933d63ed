#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "conformance/liars/liar.h"
#include "weft/backend/base.hpp"

// Faults of large memory: overlapping blocks, incomplete copies, wrong limits, workspaces.
namespace weft::conformance {
namespace {

/// Maps each handle to the good backend's block, with a count of its users.
class Blocks : public Drawn {
 public:
  using Drawn::Drawn;
  void free(weft_device d, void* handle) override {
    const std::lock_guard lock(mutex_);
    const auto at = live_.find(handle);
    if (at == live_.end()) return Drawn::free(d, handle);
    if (--at->second.owners > 0) return;
    Drawn::free(d, at->second.block);
    live_.erase(at);
  }

 protected:
  struct Block {
    void* block;
    uint64_t bytes;
    int owners = 1;
  };
  /// A block of the good backend; the handle is `shift` bytes after its beginning.
  weft_code take(weft_device d, uint64_t bytes, uint64_t shift, void** handle, weft_error* e) {
    if (bytes > UINT64_MAX - shift) return Drawn::allocate(d, bytes, handle, e);
    void* block = nullptr;
    const weft_code code = Drawn::allocate(d, bytes + shift, &block, e);
    if (code != WEFT_OK) return code;
    *handle = static_cast<char*>(block) + shift;
    live_[*handle] = {block, bytes};
    return code;
  }
  std::mutex mutex_;
  std::map<void*, Block> live_;
};

// A free list that does not remove a block: it is handed out a second time.
class GivesABlockTwice : public Blocks {
 public:
  using Blocks::Blocks;
  weft_code allocate(weft_device d, uint64_t bytes, void** handle, weft_error* e) override {
    const std::lock_guard lock(mutex_);
    if (bytes >= from_ && bytes < 4 * from_ && ++asked_ % every_ == 0)
      for (auto& [live, block] : live_)
        if (block.bytes >= bytes && block.bytes < 8 * from_) return ++block.owners, *handle = live, WEFT_OK;
    return take(d, bytes, 0, handle, e);
  }

 private:
  const uint64_t from_ = uint64_t{1} << between(random_, 8, 21), every_ = between(random_, 5, 20);
  uint64_t asked_ = 0;
};

// Suballocates blocks, rounding the next offset down instead of up.
class OverlapsTails : public Blocks {
 public:
  using Blocks::Blocks;
  weft_code allocate(weft_device d, uint64_t bytes, void** handle, weft_error* e) override {
    const std::lock_guard lock(mutex_);
    if (bytes < least_ || bytes > least_ * 64) return take(d, bytes, 0, handle, e);
    if (bytes <= room_) {
      *handle = next_;
      live_[next_] = {nullptr, bytes};
    } else {
      // Suballocated blocks are never freed: the users of the other parts are unknown.
      void* slab = nullptr;
      if (const weft_code code = Drawn::allocate(d, 4 * bytes, &slab, e); code != WEFT_OK) return code;
      slabs_.push_back(slab);
      live_[slab] = {nullptr, bytes};
      *handle = slab, room_ = 4 * bytes;
    }
    const uint64_t used = bytes / 4096 * 4096;
    next_ = static_cast<char*>(*handle) + used, room_ -= used;
    return WEFT_OK;
  }

 private:
  const uint64_t least_ = uint64_t{1} << between(random_, 13, 17);
  char* next_ = nullptr;
  uint64_t room_ = 0;
  std::vector<void*> slabs_;
};

// Large blocks have a header of half a cache line, which misaligns them.
class MisalignsLargeBlocks : public Blocks {
 public:
  using Blocks::Blocks;
  weft_code allocate(weft_device d, uint64_t bytes, void** handle, weft_error* e) override {
    const std::lock_guard lock(mutex_);
    return take(d, bytes, bytes > from_ ? 32 : 0, handle, e);
  }

 private:
  const uint64_t from_ = uint64_t{1} << between(random_, 20, 22);
};

// ---- copies

// Copies in blocks; if there are many, the rest after the last whole one is lost.
class LosesTheTail : public Drawn {
 public:
  using Drawn::Drawn;
  weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) override {
    weft_copy whole = *c;
    if (whole.bytes > from_) whole.bytes -= whole.bytes % block_;
    return Drawn::copy(q, &whole, e);
  }

 private:
  const uint64_t from_ = uint64_t{1} << between(random_, 16, 24),
                 block_ = uint64_t{1} << between(random_, 4, 12);
};

// Copies within the device by words, rounding offsets down.
class RoundsOffsets : public Drawn {
 public:
  using Drawn::Drawn;
  weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) override {
    weft_copy other = *c;
    if (other.source && other.target && other.bytes > from_) other.target_offset -= other.target_offset % 8;
    return Drawn::copy(q, &other, e);
  }

 private:
  const uint64_t from_ = uint64_t{1} << between(random_, 6, 20);
};

// Copies out in pieces, one of which misses its last byte.
class LosesAByteBetweenPieces : public Drawn {
 public:
  using Drawn::Drawn;
  weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) override {
    const uint64_t lost = piece_ * which_ - 1;
    if (c->target || c->bytes <= lost) return Drawn::copy(q, c, e);
    auto* const byte = static_cast<char*>(c->host_target) + lost;
    const char before = *byte;
    const weft_code code = Drawn::copy(q, c, e);
    *byte = before;
    return code;
  }

 private:
  const uint64_t piece_ = uint64_t{1} << between(random_, 12, 18), which_ = between(random_, 1, 4);
};

// ---- the largest buffer

// An offset in 32 bits, or in 31.
class CutsOffsets : public Drawn {
 public:
  using Drawn::Drawn;
  weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) override {
    weft_copy other = *c;
    other.source_offset &= mask_, other.target_offset &= mask_;
    return Drawn::copy(q, &other, e);
  }

 private:
  const uint64_t mask_ = (uint64_t{1} << between(random_, 31, 32)) - 1;
};

// Reports a larger limit than it supports.
class ClaimsMoreThanItGives : public Drawn {
 public:
  using Drawn::Drawn;
  void capability(weft_capability& c) override { c.max_buffer = 2 * most_; }
  weft_code allocate(weft_device d, uint64_t bytes, void** handle, weft_error* e) override {
    if (bytes > most_) return backend::fill(e, WEFT_OUT_OF_MEMORY, "no such block is left");
    return Drawn::allocate(d, bytes, handle, e);
  }

 private:
  const uint64_t most_ = (uint64_t{1} << between(random_, 27, 29)) + between(random_, 1, 4096);
};

// The last bytes of a very large block don't exist: writes to them are lost.
class LacksTheEnd : public Blocks {
 public:
  using Blocks::Blocks;
  weft_code allocate(weft_device d, uint64_t bytes, void** handle, weft_error* e) override {
    const std::lock_guard lock(mutex_);
    return take(d, bytes, 0, handle, e);
  }
  weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) override {
    weft_copy other = *c;
    {
      const std::lock_guard lock(mutex_);
      const auto at = live_.find(c->target);
      if (at != live_.end() && at->second.bytes > (1u << 28)) {
        const uint64_t end = at->second.bytes - lacking_;
        other.bytes = c->target_offset >= end ? 0 : std::min(c->bytes, end - c->target_offset);
      }
    }
    return other.bytes ? Blocks::copy(q, &other, e) : weft_code{WEFT_OK};
  }

 private:
  const uint64_t lacking_ = between(random_, 1, 60);
};

// ---- workspace

/// Kernels of one random op use a workspace.
class WorksInAWorkspace : public DrawnMirrored {
 public:
  using DrawnMirrored::DrawnMirrored;
  void prepared(weft_plan& plan) override {
    if (op_ == plan.call->op) plan.workspace = std::max(plan.workspace, bytes_);
  }
  std::string one_op() const override { return op_; }
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const weft_code code = DrawnMirrored::launch(l, e);
    if (code == WEFT_OK && op_of(l) == op_ && l->workspace) work(l, bytes_of(l->workspace));
    return code;
  }

 protected:
  virtual void work(const weft_launch* l, std::span<char> room) = 0;
  const uint64_t bytes_ = between(random_, 100, 5000), odd_ = between(random_, 1, 60);

 private:
  static constexpr const char* kOps[] = {"sum", "matmul", "exp", "sort", "cumsum", "max"};
  const std::string op_ = kOps[random_.bits() % std::size(kOps)];
};

class NeedsMore : public WorksInAWorkspace {
 public:
  using WorksInAWorkspace::WorksInAWorkspace;
  void work(const weft_launch* l, std::span<char> room) override {
    if (out_of(l).size() > 8) std::memset(room.data(), 0x5a, room.size() + odd_);
  }
};
class BeginsBefore : public WorksInAWorkspace {
 public:
  using WorksInAWorkspace::WorksInAWorkspace;
  void work(const weft_launch*, std::span<char> room) override {
    room.data()[-static_cast<int64_t>(odd_)] = 0;
  }
};
class ExpectsZeros : public WorksInAWorkspace {
 public:
  using WorksInAWorkspace::WorksInAWorkspace;
  void work(const weft_launch* l, std::span<char> room) override {
    const auto out = bytes_of(l->outputs[0]);
    if (!out.empty() && room[odd_] != 0) out[0] ^= 1;
  }
};

// ---- operands that are written and restored

/// Uses part of an operand as scratch memory and restores it.
class Borrows : public DrawnMirrored {
 public:
  using DrawnMirrored::DrawnMirrored;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const weft_code code = DrawnMirrored::launch(l, e);
    for (uint32_t i = 0; i < l->plan->call->n_inputs && !l->plan->call->updates; ++i)
      if (l->inputs[i] && borrows(i, bytes_of(l->inputs[i]))) {
        volatile char* const byte = &bytes_of(l->inputs[i])[drawn_ % bytes_of(l->inputs[i]).size()];
        const char before = *byte;
        *byte = 0x55;
        *byte = before;
      }
    return code;
  }

 protected:
  virtual bool borrows(uint32_t i, std::span<char> bytes) = 0;
  const uint64_t drawn_ = random_.bits() % 1000;
};
class BorrowsTheFirst : public Borrows {
 public:
  using Borrows::Borrows;
  bool borrows(uint32_t i, std::span<char> bytes) override { return i == 0 && !bytes.empty(); }
};
class BorrowsTheSecond : public Borrows {
 public:
  using Borrows::Borrows;
  bool borrows(uint32_t i, std::span<char> bytes) override { return i == 1 && !bytes.empty(); }
};
class BorrowsLongOnes : public Borrows {
 public:
  using Borrows::Borrows;
  bool borrows(uint32_t, std::span<char> bytes) override { return bytes.size() > 20 + drawn_ % 30; }
};

constexpr Liar kStorageLiars[] = {
    {"liar_gives_a_block_twice", "reference", "a block of some sizes is given away while it is in use",
     "keeps_live_buffers", make_liar<GivesABlockTwice>},
    {"liar_overlaps_tails", "reference", "a block begins in the last page of the one before",
     "keeps_live_buffers", make_liar<OverlapsTails>, lacks_host_memory},
    {"liar_misaligns_large_blocks", "reference", "large blocks begin 32 bytes behind a line",
     "keeps_live_buffers", make_liar<MisalignsLargeBlocks>, lacks_host_memory},
    {"liar_loses_the_tail", "reference", "long copies end with the last whole block", "copies_megabytes",
     make_liar<LosesTheTail>},
    {"liar_rounds_offsets", "reference", "copies within the device begin at words", "copies_megabytes",
     make_liar<RoundsOffsets>},
    {"liar_loses_a_byte_between_pieces", "reference", "a byte between two pieces of a copy is lost",
     "copies_megabytes", make_liar<LosesAByteBetweenPieces>},
    {"liar_cuts_offsets", "reference", "offsets have 31 or 32 bits", "gives_its_largest_buffer",
     make_liar<CutsOffsets>, lacks_large_buffers},
    {"liar_claims_more_than_it_gives", "reference", "no buffer of max_buffer bytes can be had",
     "gives_its_largest_buffer", make_liar<ClaimsMoreThanItGives>},
    {"liar_lacks_the_end", "reference", "the last bytes of a very large buffer are not there",
     "gives_its_largest_buffer", make_liar<LacksTheEnd>, lacks_large_buffers},
    {"liar_needs_more", "reference", "writes behind its workspace", "keeps_to_its_workspace",
     make_liar<NeedsMore>},
    {"liar_begins_before", "reference", "writes before its workspace", "keeps_to_its_workspace",
     make_liar<BeginsBefore>},
    {"liar_expects_zeros", "reference", "wants a workspace that is zero", "keeps_to_its_workspace",
     make_liar<ExpectsZeros>},
    {"liar_borrows_the_first", "reference", "writes into its first operand and puts it back",
     "stays_within_bounds", make_liar<BorrowsTheFirst>, lacks_host_memory},
    {"liar_borrows_the_second", "reference", "writes into its second operand and puts it back",
     "stays_within_bounds", make_liar<BorrowsTheSecond>, lacks_host_memory},
    {"liar_borrows_long_ones", "reference", "writes into long operands and puts them back",
     "stays_within_bounds", make_liar<BorrowsLongOnes>, lacks_host_memory},
};

}  // namespace

Liars storage_liars() { return kStorageLiars; }

}  // namespace weft::conformance
