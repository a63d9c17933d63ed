#include "runtime/weight_store.h"

#include <algorithm>
#include <array>
#include <cstring>
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

static Hash128 secret_hash(std::span<const std::byte> bytes) {
  static const Secret secret = drawn_secret();
  return hash128(bytes, secret);
}

WeightKey WeightKey::of(const void* data, uint64_t bytes, const seam::Device& device) {
  const Hash128 hash = secret_hash({static_cast<const std::byte*>(data), bytes});
  return {{hash.low, hash.high}, bytes, false, &device.home(), {}};
}

// Lines of a cache, evenly spaced, the first and the last one among them.
WeightKey WeightKey::sample(const void* data, uint64_t bytes, const seam::Device& device) {
  constexpr uint64_t kLine = 64, kLines = 64;
  if (bytes < 4 * kLine * kLines) return of(data, bytes, device);
  std::array<std::byte, kLine * kLines> some;
  for (uint64_t i = 0; i < kLines; ++i)
    std::memcpy(some.data() + i * kLine,
                static_cast<const std::byte*>(data) + (bytes - kLine) / (kLines - 1) * i, kLine);
  const Hash128 hash = secret_hash(some);
  return {{hash.low, hash.high}, bytes, true, &device.home(), {}};
}

WeightKey WeightKey::packed(std::string id) const {
  WeightKey key = *this;
  key.packing = std::move(id);
  return key;
}

WeightStore::Ref WeightStore::entry_of(const WeightKey& key) {
  const std::lock_guard lock(mutex_);
  auto& known = entries_[key];
  Ref entry = known.lock();
  if (!entry) known = entry = std::make_shared<Entry>(*this, key);
  return entry;
}

// Each session that shares an entry has its bytes, so one of the sources is there as long as the entry is.
bool WeightStore::Entry::is_of(const program::Blob& source) {
  std::erase_if(sources_, [](const Source& s) { return s.owner.expired(); });
  for (const Source& s : sources_) {
    const auto owner = s.owner.lock();
    if (!owner || (s.data != source.data && std::memcmp(s.data, source.data, source.size) != 0)) continue;
    if (s.data != source.data) sources_.push_back({source.data, source.owner});
    return true;
  }
  return false;
}

Result<WeightStore::Ref> WeightStore::get(const WeightKey& key, const program::Blob& source,
                                          const Make& make) {
  const Ref entry = entry_of(key);
  const std::lock_guard lock(entry->making_);  // later callers wait for the first one's copy
  if (!entry->buffer_) {
    WEFT_TRY(entry->buffer_, make());
    entry->sources_ = {{source.data, source.owner}};
    return entry;
  }
  return entry->is_of(source) ? entry : Ref();
}

Result<WeightStore::Ref> WeightStore::get(const WeightKey& key, const Make& make) {
  const Ref entry = entry_of(key);
  const std::lock_guard lock(entry->making_);
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
