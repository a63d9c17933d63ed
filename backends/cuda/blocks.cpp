#include "blocks.hpp"

#include <algorithm>

namespace weft::cuda {

namespace {

constexpr uint64_t kUnit = 512;                          // sizes and addresses of blocks
constexpr uint64_t kSmall = uint64_t{1} << 20;           // blocks up to this size come from small segments
constexpr uint64_t kSmallSegment = uint64_t{2} << 20;    // and from larger ones
constexpr uint64_t kLargeSegment = uint64_t{32} << 20;   // the least for a larger block
constexpr uint64_t kWorthCutting = uint64_t{256} << 10;  // what is left of a block in a larger segment

uint64_t rounded(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

struct Blocks::Block {
  char* at = nullptr;
  uint64_t bytes = 0;
  Block *before = nullptr, *behind = nullptr;  // in its segment
  bool small = false, used = false;

  bool is_segment() const { return !before && !behind; }
};

// Blocks of small segments, then those of larger ones: by size, then by address.
bool Blocks::Smaller::operator()(const Block* a, const Block* b) const {
  if (a->small != b->small) return a->small;
  return a->bytes != b->bytes ? a->bytes < b->bytes : a->at < b->at;
}

Blocks::Blocks(Source source, uint64_t most_kept, bool cut)
    : source_(std::move(source)), most_kept_(cut ? most_kept : 0), cut_(cut) {}
Blocks::~Blocks() {
  for (const auto& [at, block] : blocks_)
    if (!block->before) source_.put(at);
}

// The smallest free block that is large enough.
Blocks::Block* Blocks::find(uint64_t bytes) {
  Block wanted;
  wanted.bytes = bytes, wanted.small = bytes <= kSmall;
  const auto at = free_.lower_bound(&wanted);
  return at != free_.end() && (*at)->small == wanted.small ? *at : nullptr;
}

Blocks::Block* Blocks::add_segment(uint64_t wanted) {
  const bool small = wanted <= kSmall;
  const uint64_t comfortable = !cut_   ? wanted
                               : small ? kSmallSegment
                                       : std::max(kLargeSegment, rounded(wanted, kSmallSegment));
  uint64_t bytes = comfortable;
  void* at = source_.get(bytes);
  if (!at) {
    drop_unused(0);
    at = source_.get(bytes);
  }
  if (!at && bytes != wanted) at = source_.get(bytes = wanted);
  if (!at) return nullptr;
  auto block = std::make_unique<Block>();
  block->at = static_cast<char*>(at), block->bytes = bytes, block->small = small;
  Block* const added = block.get();
  blocks_.emplace(at, std::move(block));
  free_.insert(added);
  unused_ += bytes, counted_.held += bytes, ++counted_.segments;
  counted_.most_held = std::max(counted_.most_held, counted_.held);
  return added;
}

// What is left behind the first `bytes` becomes a block of its own, if somebody may want it.
void Blocks::cut(Block& block, uint64_t bytes) {
  const uint64_t left = block.bytes - bytes;
  if (!cut_ || left < (block.small ? kUnit : kWorthCutting)) return;
  auto rest = std::make_unique<Block>();
  rest->at = block.at + bytes, rest->bytes = left, rest->small = block.small;
  rest->before = &block, rest->behind = block.behind;
  if (block.behind) block.behind->before = rest.get();
  block.behind = rest.get(), block.bytes = bytes;
  free_.insert(rest.get());
  void* const at = rest->at;
  blocks_.emplace(at, std::move(rest));
}

void* Blocks::allocate(uint64_t bytes) {
  bytes = rounded(std::max<uint64_t>(bytes, 1), kUnit);
  const std::lock_guard lock(mutex_);
  Block* block = find(bytes);
  if (!block) block = add_segment(bytes);
  if (!block) return nullptr;
  free_.erase(block);
  if (block->is_segment()) unused_ -= block->bytes;
  cut(*block, bytes);
  block->used = true;
  ++counted_.given, counted_.used += block->bytes;
  counted_.most_used = std::max(counted_.most_used, counted_.used);
  return block->at;
}

// One block of two neighbours, of which neither is in the list of free ones.
Blocks::Block& Blocks::merged(Block& block, Block& behind) {
  block.bytes += behind.bytes, block.behind = behind.behind;
  if (behind.behind) behind.behind->before = &block;
  blocks_.erase(behind.at);
  return block;
}

bool Blocks::release(void* at) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(at);
  if (found == blocks_.end() || !found->second->used) return false;
  Block* block = found->second.get();
  block->used = false, counted_.used -= block->bytes;
  if (Block* behind = block->behind; behind && !behind->used) free_.erase(behind), merged(*block, *behind);
  if (Block* before = block->before; before && !before->used)
    free_.erase(before), block = &merged(*before, *block);
  free_.insert(block);
  if (!block->is_segment()) return true;
  unused_ += block->bytes;
  if (unused_ > most_kept_) drop_unused(most_kept_);
  return true;
}

void Blocks::drop(Block& whole) {
  free_.erase(&whole);
  unused_ -= whole.bytes, counted_.held -= whole.bytes;
  void* const at = whole.at;
  blocks_.erase(at);
  source_.put(at);
}

// The largest first: they are the least likely to be wanted again.
void Blocks::drop_unused(uint64_t keep) {
  for (auto at = free_.end(); unused_ > keep && at != free_.begin();) {
    Block* const block = *--at;
    if (!block->is_segment()) continue;
    ++at;
    drop(*block);
  }
}

void Blocks::trim() {
  const std::lock_guard lock(mutex_);
  drop_unused(0);
}

void Blocks::abandon() {
  const std::lock_guard lock(mutex_);
  free_.clear(), blocks_.clear();
  unused_ = 0, counted_.used = 0, counted_.held = 0;
}

Blocks::Statistics Blocks::statistics() const {
  const std::lock_guard lock(mutex_);
  Statistics s = counted_;
  for (const Block* b : free_) s.largest = std::max(s.largest, b->bytes);
  return s;
}

}  // namespace weft::cuda
