#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "program/program.h"
#include "seam/device.h"

namespace weft::runtime {

/// What a piece of memory in the store holds: bytes by their hash, on a device, packed or (no id) as they
/// are. Views of one device share. The hash has a secret of the process, so nobody can make a file whose
/// weights pass for those of another one.
struct WeightKey {
  uint64_t hash[2] = {};
  uint64_t bytes = 0;
  bool sampled =
      false;  ///< the hash is of some of the bytes: keys that are equal only suggest that these are
  const seam::Device* device = nullptr;
  std::string packing;

  static WeightKey of(const void* data, uint64_t bytes, const seam::Device& device);
  /// By a few thousand of the bytes, where there are many: reading all of them takes as long as packing them.
  static WeightKey sample(const void* data, uint64_t bytes, const seam::Device& device);
  WeightKey packed(std::string id) const;
  friend auto operator<=>(const WeightKey&, const WeightKey&) = default;
};

/// The weights of all sessions of the process, one copy of each. A copy is freed with its last session.
class WeightStore {
 public:
  class Entry;
  using Ref = std::shared_ptr<Entry>;

  /// From one thread at a time for each key, and only where there is no copy yet. What it enqueued has passed
  /// when it returns: other queues read the memory.
  using Make = std::function<Result<seam::BufferRef>()>;
  Result<Ref> get(const WeightKey& key, const Make& make);
  /// By a sampled key, where `source` has all of the bytes. Null: there is memory of this key that was made
  /// of others, or it can't be told; then ask by a key of all of them.
  Result<Ref> get(const WeightKey& key, const program::Blob& source, const Make& make);
  /// The ids of the packings that there are of these bytes.
  std::vector<std::string> packings(const WeightKey& plain);

  class Entry {
   public:
    Entry(WeightStore& store, WeightKey key) : store_(store), key_(std::move(key)) {}
    ~Entry() { store_.forget(key_); }
    Entry(const Entry&) = delete;
    const seam::BufferRef& buffer() const { return buffer_; }
    const WeightKey& key() const { return key_; }

   private:
    friend class WeightStore;
    /// Bytes that this was made of, or that were found to be the same; gone with their owner.
    struct Source {
      const std::byte* data;
      std::weak_ptr<const void> owner;
    };
    bool is_of(const program::Blob& source);

    WeightStore& store_;
    const WeightKey key_;
    std::mutex making_;
    seam::BufferRef buffer_;
    std::vector<Source> sources_;
  };

 private:
  void forget(const WeightKey& key);
  Ref entry_of(const WeightKey& key);
  std::mutex mutex_;
  std::map<WeightKey, std::weak_ptr<Entry>> entries_;
};

WeightStore& weight_store();

}  // namespace weft::runtime
