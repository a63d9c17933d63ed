#include "eager/call_cache.h"

namespace weft::eager {

CachedCall& CallCache::insert(CachedCall call) {
  ++misses_;
  CachedCall* bucket = &slots_[bucket_of(call.key)];
  CachedCall* slot = bucket;
  for (uint32_t i = 1; i < kWays; ++i)
    if (bucket[i].used < slot->used) slot = &bucket[i];
  call.used = ++clock_;
  *slot = std::move(call);
  return *slot;
}

void CallCache::clear() {
  for (auto& slot : slots_) slot = CachedCall();
}

uint64_t CallCache::entries() const {
  uint64_t n = 0;
  for (const auto& slot : slots_) n += slot.kind != CachedCall::Kind::empty;
  return n;
}

}  // namespace weft::eager
