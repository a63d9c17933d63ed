#pragma once
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "link/schedule.h"
#include "runtime/slabs.h"
#include "runtime/weight_store.h"

namespace weft::runtime {

/// The weights that the schedules of one session read, packed or not, on each device that reads them. All but
/// those that a caller gave are shared through the weight store.
class Weights {
 public:
  Weights(const program::CompiledProgram& program, std::span<seam::Device* const> devices)
      : program_(program), devices_(devices), plain_(program.weights.size() * devices.size()) {}

  /// Existing memory of a weight on the first device.
  void take(size_t weight, seam::BufferRef memory) { plain_[at(weight, 0)] = {std::move(memory), nullptr}; }
  /// The existing packings of a weight; nothing where it may not be packed.
  std::optional<std::vector<std::string>> packings(size_t weight, uint32_t device);
  /// A result of the recipe, on the first device.
  void take(size_t weight, WeightStore::Ref made) {
    plain_[at(weight, 0)] = {made->buffer(), std::move(made)};
  }
  /// Uploads and packs what the schedule reads, on queues of its own: a failure is an error of this call, and
  /// no other session shares the result. Waits for completion, for sessions with other queues read it.
  /// Leaves out packed weights that are to be `staged` (by index of Schedule::packed), unless they are there.
  Status fill(const link::Schedule& schedule, const std::vector<bool>& staged);
  /// Packs a weight to memory that the caller has for it.
  Status pack(const link::PackedWeight& want, const seam::Buffer& to, seam::Queue& queue);
  /// The memory of a weight's slot, after fill(), or null where it was left out; `packed` is that of its
  /// schedule.
  seam::Buffer* memory(std::span<const link::PackedWeight> packed, const link::BufferAllocation& slot) const;
  bool holds(const void* buffer) const;

 private:
  class Queues;
  struct Held {
    seam::BufferRef buffer;
    WeightStore::Ref shared;  // null: it was given, or is memory of the program
  };
  using PackedKey = std::tuple<int32_t, uint32_t, std::string>;  // weight, device, id
  static PackedKey key_of(const link::PackedWeight& p) { return {p.weight, p.device, p.packing().id}; }
  size_t at(size_t weight, uint32_t device) const { return weight * devices_.size() + device; }
  const program::Blob* blob(size_t weight) const;
  WeightKey key(size_t weight, uint32_t device);
  Result<WeightStore::Ref> shared(size_t weight, uint32_t device, const std::string& packing,
                                  const WeightStore::Make& make);
  Result<Held> copied(size_t weight, uint32_t device, Queues& queues);
  Status fill_from_first_device(size_t weight, const seam::Buffer& to, uint32_t device, Queues& queues);
  bool stays(const link::BufferAllocation& slot) const;
  Result<Held> in_program(size_t weight, uint32_t device);
  Result<Held> packed(const link::PackedWeight& want, Slabs& slabs, Queues& queues);
  bool in_store(const link::PackedWeight& want);
  seam::Buffer* buffer_of(const link::PackedWeight& want) const;  // null: it is not packed

  const program::CompiledProgram& program_;
  const std::span<seam::Device* const> devices_;
  std::vector<Held> plain_;  // by weight and device; empty where no schedule reads it
  std::map<PackedKey, Held> packed_;
  std::map<size_t, WeightKey> keys_;  // on no device
};

}  // namespace weft::runtime
