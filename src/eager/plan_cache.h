#pragma once
#include <vector>

#include "seam/plan.h"

namespace weft::eager {

using KeyWords = SmallVector<uint64_t, 40>;

/// What to do for one signature of a call.
struct CachedCall {
  enum class Kind : uint8_t { empty, kernel, decompose, elsewhere };
  struct Output {
    DType dtype = DType::f32;
    int8_t update = -1;  // the input that this output is written over
    IntList shape;
    uint64_t bytes = 0;
  };

  uint64_t hash = 0;
  uint64_t used = 0;
  KeyWords key;
  Kind kind = Kind::empty;
  seam::PlanPtr plan;                 // kernel
  seam::Device* elsewhere = nullptr;  // the device that policy falls back to
  std::vector<Output> outputs;
};

/// This thread's plans by call signature. Bounded: a full bucket gives up the entry that was used longest
/// ago. A hit costs a hash, a comparison and no allocation.
class PlanCache {
 public:
  PlanCache() : slots_(kSlots) {}

  CachedCall* find(const KeyWords& key, uint64_t hash) {
    CachedCall* bucket = &slots_[(hash % kBuckets) * kWays];
    for (uint32_t i = 0; i < kWays; ++i)
      if (bucket[i].hash == hash && bucket[i].kind != CachedCall::Kind::empty && bucket[i].key == key) {
        bucket[i].used = ++clock_;
        return &bucket[i];
      }
    return nullptr;
  }
  CachedCall& insert(CachedCall call);
  void clear();
  uint64_t misses() const { return misses_; }
  uint64_t entries() const;

 private:
  static constexpr uint32_t kBuckets = 512, kWays = 4, kSlots = kBuckets * kWays;
  std::vector<CachedCall> slots_;
  uint64_t clock_ = 0, misses_ = 0;
};

/// Mixes words as wyhash does: one wide multiplication each.
inline uint64_t hash_words(const KeyWords& key) {
  uint64_t h = 0x9e3779b97f4a7c15ull ^ key.size();
  for (const uint64_t w : key) {
    const auto wide = static_cast<unsigned __int128>(h ^ w) * 0xa0761d6478bd642full;
    h = static_cast<uint64_t>(wide) ^ static_cast<uint64_t>(wide >> 64) ^ (h << 7 | h >> 57);
  }
  return h;
}

}  // namespace weft::eager
