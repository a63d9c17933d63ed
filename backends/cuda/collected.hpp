#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "weft/backend.hpp"

// What waits in a queue for more work of its kind (collect.hpp).
namespace weft::cuda {

using backend::Outcome;

struct Queue;

/// Numbers of a queue in which blocks leave their sums for the kernel after them.
inline constexpr int kPartials = 65536;
/// Behind them, counters of blocks that are ready: 0 between kernels.
inline constexpr int kCounters = 1024, kQueueMemory = kPartials + kCounters;

/// Bytes of memory.
struct Range {
  const char *begin, *end;
  bool meets(const Range& other) const { return begin < other.end && other.begin < end; }
};
template <class T>
Range range_of(const T* at, int64_t n) {
  return {reinterpret_cast<const char*>(at), reinterpret_cast<const char*>(at + n)};
}

inline Range range_of(backend::TensorView t) { return {t.data(), t.data() + t.bytes()}; }

/// Pieces that wait.
class Collected {
 public:
  virtual ~Collected() = default;
  virtual Outcome start(Queue&) = 0;

  bool depends(std::span<const Range> reads, std::span<const Range> writes) const {
    const auto meet = [](std::span<const Range> some, std::span<const Range> others) {
      return std::ranges::any_of(some, [&](const Range& r) {
        return std::ranges::any_of(others, [&](const Range& o) { return r.meets(o); });
      });
    };
    return meet(reads, writes_) || meet(writes, writes_) || meet(writes, reads_);
  }
  void uses(std::span<const Range> reads, std::span<const Range> writes) {
    reads_.insert(reads_.end(), reads.begin(), reads.end());
    writes_.insert(writes_.end(), writes.begin(), writes.end());
  }

 private:
  std::vector<Range> reads_, writes_;
};

}  // namespace weft::cuda
