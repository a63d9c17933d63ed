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
    known = keys_
                .emplace(weight, b ? WeightKey::of(b->data, b->size, *devices_[0])
                                   : plain_[at(weight, 0)].shared->key())
                .first;
  }
  WeightKey key = known->second;
  key.device = &devices_[device]->home();
  return key;
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
  WEFT_TRY(auto entry, weight_store().get(key(weight, device), make));
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

Result<Weights::Held> Weights::packed(const link::PackedWeight& want, Queues& queues) {
  const auto weight = static_cast<size_t>(want.weight);
  const auto make = [&]() -> Result<seam::BufferRef> {
    WEFT_TRY(auto buffer, devices_[want.device]->allocate_unpooled(want.packing().bytes));
    WEFT_CHECK(pack(want, *buffer.get(), queues).at(shown(program_.weights[weight].name)));
    return buffer;
  };
  WEFT_TRY(auto entry, weight_store().get(key(weight, want.device).packed(want.packing().id), make));
  return Held{entry->buffer(), entry};
}

// Packs from the program's bytes on the host, from what the recipe made, or from a temporary upload.
Status Weights::pack(const link::PackedWeight& want, const seam::Buffer& to, Queues& queues) {
  const auto weight = static_cast<size_t>(want.weight);
  const seam::Device& device = *devices_[want.device];
  const weft_plan& plan = want.prepared->plan;
  const seam::ConcreteType& type = *want.prepared->call->desc().inputs[want.input];
  Held copy = plain_[at(weight, want.device)];
  if (!copy.buffer && !device.host_memory()) {
    WEFT_TRY(copy, copied(weight, want.device, queues));
  }
  WEFT_TRY(auto* queue, queues.of(want.device));
  // `pack` only reads it.
  void* data = copy.buffer ? copy.buffer->handle : const_cast<std::byte*>(blob(weight)->data);
  const weft_tensor from = c_tensor(data, type, device);
  const weft_tensor into = c_tensor(to.handle, type, device, want.packing().layout);
  seam::CError error;
  const weft_code code = want.prepared->kernel.pack(&plan, want.input, &from, &into, queue->c(), error.out());
  const Status passed = queue->synchronize();  // also after a failure: the copy is freed
  if (code != WEFT_OK) return error.status(code).at(want.prepared->kernel.id);
  return passed;
}

Status Weights::fill(const link::Schedule& schedule) {
  Queues queues(devices_);
  for (const auto& slot : schedule.slots) {
    if (slot.kind != link::BufferAllocation::Kind::weight || slot.packed >= 0) continue;
    auto& held = plain_[at(static_cast<size_t>(slot.index), slot.device)];
    if (held.buffer) continue;
    WEFT_TRY(held, copied(static_cast<size_t>(slot.index), slot.device, queues));
  }
  for (const auto& want : schedule.packed) {
    auto& held = packed_[key_of(want)];
    if (held.buffer) continue;
    WEFT_TRY(held, packed(want, queues));
  }
  return {};
}

seam::Buffer* Weights::memory(std::span<const link::PackedWeight> packed,
                              const link::BufferAllocation& slot) const {
  if (slot.packed < 0) return plain_[at(static_cast<size_t>(slot.index), slot.device)].buffer.get();
  return packed_.at(key_of(packed[static_cast<size_t>(slot.packed)])).buffer.get();
}

bool Weights::holds(const void* buffer) const {
  return std::ranges::any_of(plain_, [&](const Held& h) { return h.buffer.get() == buffer; });
}

}  // namespace weft::runtime
