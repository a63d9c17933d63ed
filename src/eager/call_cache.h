#pragma once
#include <vector>

#include "seam/prepared_kernel.h"

namespace weft::eager {

/// The words that identify a call, and their hash: a sum of independent products, because a hit waits for the
/// hash. Carries go upwards only, so the highest bits depend on every bit of every word.
class CallKey {
 public:
  /// Adds words. Not part of the key, so that its state stays in registers.
  class Writer {
   public:
    /// At most `most` words are added.
    Writer(CallKey& key, size_t most) : at_(key.words_.extend(most)) {}
    [[gnu::always_inline]] void add(uint64_t word) {
      hash_ += word * factor_, factor_ += 0xa0761d6478bd642eull;  // stays odd
      *at_++ = word;
    }
    void finish(CallKey& key) {
      key.words_.resize(static_cast<size_t>(at_ - key.words_.data())), key.hash_ = hash_;
    }

   private:
    uint64_t* at_;
    uint64_t hash_ = 0, factor_ = 0x9e3779b97f4a7c15ull;
  };

  uint64_t hash() const { return hash_; }
  friend bool operator==(const CallKey& a, const CallKey& b) {
    if (a.hash_ != b.hash_ || a.words_.size() != b.words_.size()) return false;
    const uint64_t *x = a.words_.data(), *y = b.words_.data();
    for (size_t n = a.words_.size(); n > 0; --n)  // a handful: a call of memcmp costs more
      if (*x++ != *y++) return false;
    return true;
  }

 private:
  SmallVector<uint64_t, 76> words_;  // eight operands of eight axes
  uint64_t hash_ = 0;
};

/// What to do for one signature of a call.
struct CachedCall {
  enum class Kind : uint8_t { empty, kernel, decompose, elsewhere, regular };
  struct Output {
    DType dtype = DType::f32;
    int8_t update = -1;  // the input that this output is written over
    IntList shape;
    uint64_t bytes = 0;
  };

  uint64_t used = 0;
  CallKey key;
  Kind kind = Kind::empty;
  seam::PreparedPtr plan;             // kernel
  seam::Device* elsewhere = nullptr;  // the device that policy falls back to
  std::vector<Output> outputs;
};

/// This thread's prepared kernels by call signature. Bounded: a full bucket evicts its least recently used
/// entry. A hit costs a hash, a comparison and no allocation.
class CallCache {
 public:
  CallCache() : slots_(kSlots) {}

  CachedCall* find(const CallKey& key) {
    CachedCall* bucket = &slots_[bucket_of(key)];
    for (uint32_t i = 0; i < kWays; ++i)
      if (bucket[i].key == key && bucket[i].kind != CachedCall::Kind::empty) {
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
  static constexpr uint32_t kBucketBits = 9;
  static size_t bucket_of(const CallKey& key) { return (key.hash() >> (64 - kBucketBits)) * kWays; }

  static constexpr uint32_t kWays = 4, kSlots = kWays << kBucketBits;
  std::vector<CachedCall> slots_;
  uint64_t clock_ = 0, misses_ = 0;
};

}  // namespace weft::eager
