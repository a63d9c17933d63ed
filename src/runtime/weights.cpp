#include "runtime/weights.h"

#include "base/shown.h"
#include "link/resolve_types.h"
#include "runtime/c_tensor.h"

namespace weft::runtime {
// Opened on first use. Each upload synchronizes its queue, so that it sees its own failures alone.
class Weights::Queues {
 public:
  explicit Queues(std::span<seam::Device* const> devices) : devices_(devices), open_(devices.size()) {}
  Result<seam::Queue*> of(uint32_t device) {
    if (!open_[device]) {
      WEFT_TRY(open_[device], devices_[device]->open_queue());
    }
    return open_[device].get();
  }

 private:
  const std::span<seam::Device* const> devices_;
  std::vector<std::unique_ptr<seam::Queue>> open_;
};

const program::Blob* Weights::blob(size_t weight) const {
  const int32_t i = program_.weights[weight].blob;
  return i < 0 ? nullptr : &program_.blobs[static_cast<size_t>(i)];
}

WeightKey Weights::key(size_t weight, uint32_t device) {
  auto known = keys_.find(weight);
  if (known == keys_.end()) {
    const program::Blob* b = blob(weight);
    const auto own = [&] {  // what is compared with it later must have an owner
      return b->owner ? WeightKey::sample(b->data, b->size, *devices_[0])
                      : WeightKey::of(b->data, b->size, *devices_[0]);
    };
    known = keys_.emplace(weight, b ? own() : plain_[at(weight, 0)].shared->key()).first;
  }
  WeightKey key = known->second;
  key.device = &devices_[device]->home();
  return key;
}

// One copy of what the weight's bytes are, for all sessions.
Result<WeightStore::Ref> Weights::shared(size_t weight, uint32_t device, const std::string& packing,
                                         const WeightStore::Make& make) {
  WeightKey own = key(weight, device).packed(packing);
  if (!own.sampled) return weight_store().get(own, make);
  const program::Blob& b = *blob(weight);
  WEFT_TRY(auto entry, weight_store().get(own, b, make));
  if (entry) return entry;
  keys_[weight] = WeightKey::of(b.data, b.size, *devices_[0]);
  return weight_store().get(key(weight, device).packed(packing), make);
}

// Memory of a caller stays, so a packed copy would be a second one. Results of the recipe are on the first
// device, and packed there.
std::optional<std::vector<std::string>> Weights::packings(size_t weight, uint32_t device) {
  const auto& here = plain_[at(weight, 0)];
  if (here.buffer ? !here.shared : !blob(weight)) return std::nullopt;
  if (!blob(weight) && devices_.size() > 1) return std::nullopt;
  return weight_store().packings(key(weight, device));
}

Result<Weights::Held> Weights::copied(size_t weight, uint32_t device, Queues& queues) {
  const auto& w = program_.weights[weight];
  WEFT_TRY(const auto type, link::concrete(program_.values[static_cast<size_t>(w.value)], {}));
  const auto make = [&]() -> Result<seam::BufferRef> {
    WEFT_TRY(auto buffer, devices_[device]->allocate_unpooled(type.bytes()));
    WEFT_TRY(auto* queue, queues.of(device));
    if (const program::Blob* b = blob(weight)) {
      WEFT_CHECK(queue->copy_in(*buffer.get(), 0, b->data, b->size).at(shown(w.name)));
    } else {
      WEFT_CHECK(fill_from_first_device(weight, *buffer.get(), device, queues).at(shown(w.name)));
    }
    WEFT_CHECK(queue->synchronize().at(shown(w.name)));
    return buffer;
  };
  if (!blob(weight)) {
    WEFT_TRY(auto own, make());
    return Held{std::move(own), nullptr};
  }
  WEFT_TRY(auto entry, shared(weight, device, "", make));
  return Held{entry->buffer(), entry};
}

// For weights without bytes in the program: given by the caller, or made by the recipe.
Status Weights::fill_from_first_device(size_t weight, const seam::Buffer& to, uint32_t device,
                                       Queues& queues) {
  const auto& from = plain_[at(weight, 0)].buffer;
  if (!from) return fail(Code::internal, "nothing gives it a value");
  std::vector<std::byte> bytes(to.bytes);
  WEFT_TRY(auto* out, queues.of(0));
  WEFT_CHECK(out->copy_out(bytes.data(), *from.get(), 0, bytes.size()));
  WEFT_TRY(auto* in, queues.of(device));
  WEFT_CHECK(in->copy_in(to, 0, bytes.data(), bytes.size()));
  return in->synchronize();
}

// The memory of the program itself, which lives as long as the buffer.
Result<Weights::Held> Weights::in_program(size_t weight, uint32_t device) {
  const program::Blob& b = *blob(weight);
  DLTensor bytes{};
  bytes.data = const_cast<std::byte*>(b.data);  // kernels only read weights
  bytes.device = {kDLCPU, 0};
  WEFT_TRY(auto buffer, devices_[device]->import_memory(bytes, b.size, [owner = b.owner] {}));
  return Held{std::move(buffer), nullptr};
}

Result<Weights::Held> Weights::packed(const link::PackedWeight& want, Slabs& slabs, Queues& queues) {
  const auto weight = static_cast<size_t>(want.weight);
  const auto make = [&]() -> Result<seam::BufferRef> {
    WEFT_TRY(auto buffer, slabs.take(*devices_[want.device], want.packing().bytes));
    WEFT_TRY(auto* queue, queues.of(want.device));
    WEFT_CHECK(pack(want, *buffer.get(), *queue));
    return buffer;
  };
  WEFT_TRY(auto entry, shared(weight, want.device, want.packing().id, make));
  return Held{entry->buffer(), entry};
}

// Packs from the program's bytes on the host, from what the recipe made, or from a temporary upload.
Status Weights::pack(const link::PackedWeight& want, const seam::Buffer& to, seam::Queue& queue) {
  const auto weight = static_cast<size_t>(want.weight);
  const seam::Device& device = *devices_[want.device];
  const seam::ConcreteType& type = *want.prepared->call->desc().inputs[want.input];
  Held copy = plain_[at(weight, want.device)];
  if (!copy.buffer && !device.host_memory()) {
    Queues queues(devices_);
    WEFT_TRY(copy, copied(weight, want.device, queues));
  }
  // `pack` only reads it.
  void* data = copy.buffer ? copy.buffer->handle : const_cast<std::byte*>(blob(weight)->data);
  const weft_tensor from = c_tensor(data, type, device);
  const weft_tensor into = c_tensor(to.handle, type, device, want.packing().layout);
  Status packed = seam::pack(*want.prepared, want.input, from, into, queue);
  Status passed = queue.synchronize();  // also after a failure: the copy is freed
  if (!packed.ok()) passed = std::move(packed);
  return std::move(passed).at(shown(program_.weights[weight].name));
}

// Whether each weight is a table: steps read single rows of it, and may never touch the others.
static std::vector<bool> tables_of(const link::Schedule& schedule, size_t weights) {
  std::vector<bool> table(weights, true);
  for (const auto& step : schedule.steps)
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (step.inputs[i] < 0) continue;
      const auto& slot = schedule.slots[static_cast<size_t>(step.inputs[i])];
      const bool picks = i == 0 && step.prepared && step.prepared->call->desc().op == "gather";
      if (slot.kind == link::BufferAllocation::Kind::weight && !picks)
        table[static_cast<size_t>(slot.index)] = false;
    }
  return table;
}

// Large tables stay where they are in the program: a file's pages are read when a row is. What is read whole
// is faster in memory of the device, with its large pages.
bool Weights::stays(const link::BufferAllocation& slot) const {
  constexpr uint64_t kLeast = 1 << 20;
  const program::Blob* b = blob(static_cast<size_t>(slot.index));
  return b && b->size >= kLeast && devices_[slot.device]->host_memory() &&
         reinterpret_cast<uintptr_t>(b->data) % 64 == 0;
}

bool Weights::in_store(const link::PackedWeight& want) {
  const auto ids = packings(static_cast<size_t>(want.weight), want.device);
  return ids && std::ranges::find(*ids, want.packing().id) != ids->end();
}

Status Weights::fill(const link::Schedule& schedule, const std::vector<bool>& staged) {
  Queues queues(devices_);
  const auto tables = tables_of(schedule, program_.weights.size());
  for (const auto& slot : schedule.slots) {
    if (slot.kind != link::BufferAllocation::Kind::weight || slot.packed >= 0) continue;
    const auto weight = static_cast<size_t>(slot.index);
    auto& held = plain_[at(weight, slot.device)];
    if (held.buffer) continue;
    WEFT_TRY(held, tables[weight] && stays(slot) ? in_program(weight, slot.device)
                                                 : copied(weight, slot.device, queues));
  }
  uint64_t bytes = 0;
  std::vector<const link::PackedWeight*> wanted;
  for (size_t i = 0; i < schedule.packed.size(); ++i) {
    const auto& want = schedule.packed[i];
    if (buffer_of(want) || (staged[i] && !in_store(want))) continue;
    wanted.push_back(&want), bytes += want.packing().bytes + 64;
  }
  Slabs slabs(bytes);
  for (const auto* want : wanted) {
    auto& held = packed_[key_of(*want)];
    if (held.buffer) continue;
    WEFT_TRY(held, packed(*want, slabs, queues));
  }
  return {};
}

seam::Buffer* Weights::buffer_of(const link::PackedWeight& want) const {
  const auto held = packed_.find(key_of(want));
  return held == packed_.end() ? nullptr : held->second.buffer.get();
}

seam::Buffer* Weights::memory(std::span<const link::PackedWeight> packed,
                              const link::BufferAllocation& slot) const {
  if (slot.packed < 0) return plain_[at(static_cast<size_t>(slot.index), slot.device)].buffer.get();
  return buffer_of(packed[static_cast<size_t>(slot.packed)]);
}

bool Weights::holds(const void* buffer) const {
  return std::ranges::any_of(plain_, [&](const Held& h) { return h.buffer.get() == buffer; });
}

}  // namespace weft::runtime
