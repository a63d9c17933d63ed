#include "runtime/weight_store.h"

#include <algorithm>
#include <array>
#include <random>

#include "base/hash.h"

namespace weft::runtime {

namespace {

using Secret = std::array<std::byte, kHashSecret>;

Secret drawn_secret() {
  std::random_device random;
  std::array<uint32_t, 16> seed{};
  std::ranges::generate(seed, std::ref(random));
  Secret secret;
  hash128_secret(std::as_bytes(std::span(seed)), secret);
  return secret;
}

}  // namespace

WeightKey WeightKey::of(const void* data, uint64_t bytes, const seam::Device& device) {
  static const Secret secret = drawn_secret();
  const Hash128 hash = hash128({static_cast<const std::byte*>(data), bytes}, secret);
  return {{hash.low, hash.high}, bytes, &device.home(), {}};
}

WeightKey WeightKey::packed(std::string id) const {
  WeightKey key = *this;
  key.packing = std::move(id);
  return key;
}

Result<WeightStore::Ref> WeightStore::get(const WeightKey& key, const Make& make) {
  Ref entry;
  {
    const std::lock_guard lock(mutex_);
    auto& known = entries_[key];
    entry = known.lock();
    if (!entry) known = entry = std::make_shared<Entry>(*this, key);
  }
  const std::lock_guard lock(entry->making_);  // later callers wait for the first one's copy
  if (!entry->buffer_) {
    WEFT_TRY(entry->buffer_, make());
  }
  return entry;
}

std::vector<std::string> WeightStore::packings(const WeightKey& plain) {
  std::vector<std::string> ids;
  const std::lock_guard lock(mutex_);
  for (auto at = entries_.upper_bound(plain); at != entries_.end(); ++at) {
    if (plain.packed(at->first.packing) != at->first) break;  // other bytes
    if (!at->second.expired()) ids.push_back(at->first.packing);
  }
  return ids;
}

// A new entry may have been made since the last reference to this one was dropped.
void WeightStore::forget(const WeightKey& key) {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(key);
  if (at != entries_.end() && at->second.expired()) entries_.erase(at);
}

WeightStore& weight_store() {
  static auto* const store = new WeightStore;  // sessions that end with the process still need it
  return *store;
}

}  // namespace weft::runtime
