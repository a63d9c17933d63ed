#include "link/order.h"

#include <map>
#include <tuple>

namespace weft::link {
namespace {

using Kind = BufferAllocation::Kind;

class Orderer {
 public:
  Orderer(const program::CompiledProgram& program, FlatProgram flat, std::span<seam::Device* const> devices)
      : program_(program), flat_(std::move(flat)), slots_(flat_.values.size() * devices.size(), -1) {
    schedule_.devices.assign(devices.begin(), devices.end());
    schedule_.choices = std::move(flat_.choices);
    for (auto& call : flat_.calls) call.device = memory_of(call.device);
  }

  Result<Schedule> run() {
    for (const auto& in : program_.inputs) add_input(in.value);
    for (auto& call : flat_.calls) WEFT_CHECK(call.prepared ? add_launch(call) : add_move(call));
    for (const auto& out : program_.outputs) {
      WEFT_TRY(const int32_t slot, slot_on(out.value, 0));
      add_output(slot);
    }
    for (auto& s : schedule_.slots)  // views are where their memory is
      if (s.same_as >= 0) s.kind = slot(s.same_as).kind, s.index = slot(s.same_as).index;
    return std::move(schedule_);
  }

 private:
  // The first device that shares this one's memory: a provider's kernels run on their home's buffers.
  uint32_t memory_of(uint32_t device) const {
    uint32_t first = 0;
    while (!schedule_.devices[first]->shares_memory(*schedule_.devices[device])) ++first;
    return first;
  }
  const FlatValue& value(int32_t id) const { return flat_.values[static_cast<size_t>(id)]; }
  // The slot of a value on a device, or -1.
  int32_t& place(int32_t id, uint32_t device) {
    return slots_[static_cast<size_t>(id) * schedule_.devices.size() + device];
  }
  BufferAllocation& slot(int32_t s) { return schedule_.slots[static_cast<size_t>(s)]; }
  int32_t add_slot(BufferAllocation slot) {
    schedule_.slots.push_back(std::move(slot));
    return static_cast<int32_t>(schedule_.slots.size()) - 1;
  }

  int32_t slot_for(int32_t id, uint32_t device) {
    if (place(id, device) >= 0) return place(id, device);
    const FlatValue& v = value(id);
    const int32_t at = v.view_of < 0 ? add_slot({.device = device, .value = id, .type = v.type})
                                     : add_view(id, slot_for(v.view_of, device));
    return place(id, device) = at;
  }
  // A slot for a view of slot `of`.
  int32_t add_view(int32_t id, int32_t of) {
    return add_slot_in(of, value(id).view_offset, slot(of).value, id);
  }
  // A slot for a value that reuses the memory of slot `at`.
  int32_t add_over(int32_t id, int32_t at) { return add_slot_in(at, 0, id, id); }
  int32_t add_slot_in(int32_t at, uint64_t offset, int32_t holds, int32_t id) {
    BufferAllocation in = slot(at);
    if (in.same_as < 0) in.same_as = at;
    in.within += offset, in.value = holds, in.type = value(id).type;
    return add_slot(std::move(in));
  }

  // An input is the caller's memory. If the program overwrites it, it works on a copy.
  void add_input(int32_t id) {
    const int32_t port =
        add_slot({.kind = Kind::external, .index = next_port_++, .value = id, .type = value(id).type});
    schedule_.inputs.push_back(port);
    if (value(id).overwritten)
      add_copy(port, slot_for(id, 0));
    else
      place(id, 0) = port;
  }
  // An output in the arena is written directly to the caller's memory. One that lies elsewhere, or is an
  // output twice, is copied there at the end.
  void add_output(int32_t from) {
    const int32_t base = slot(from).same_as < 0 ? from : slot(from).same_as;
    const int32_t port = next_port_++;
    if (slot(base).kind == Kind::arena && slot(base).type.bytes() == slot(from).type.bytes()) {
      slot(base).kind = Kind::external, slot(base).index = port;
      schedule_.outputs.push_back(from);
      return;
    }
    const int32_t to =
        add_slot({.kind = Kind::external, .index = port, .value = slot(from).value, .type = slot(from).type});
    add_copy(from, to);
    schedule_.outputs.push_back(to);
  }

  // A slot from which an existing value can be read on `device`; adds a copy if needed.
  Result<int32_t> slot_on(int32_t id, uint32_t device) {
    if (place(id, device) >= 0) return place(id, device);
    const FlatValue& v = value(id);
    if (v.view_of >= 0) return view_on(id, device);
    if (v.weight >= 0)
      return place(id, device) = add_slot(
                 {.kind = Kind::weight, .device = device, .index = v.weight, .value = id, .type = v.type});
    WEFT_TRY(const int32_t from, somewhere(id));
    const int32_t to = slot_for(id, device);
    add_copy(from, to);
    return to;
  }
  Result<int32_t> view_on(int32_t id, uint32_t device) {
    WEFT_TRY(const int32_t base, slot_on(value(id).view_of, device));
    return place(id, device) = add_view(id, base);
  }
  // Any slot that holds the value, that of the first device preferred.
  Result<int32_t> somewhere(int32_t id) {
    for (uint32_t d = 0; d < schedule_.devices.size(); ++d)
      if (place(id, d) >= 0) return place(id, d);
    const FlatValue& v = value(id);
    if (v.state >= 0)
      return place(id, 0) = add_slot({.kind = Kind::state, .index = v.state, .value = id, .type = v.type});
    if (v.view_of >= 0) {
      WEFT_TRY(const int32_t base, somewhere(v.view_of));
      return view_on(id, slot(base).device);
    }
    if (v.weight >= 0) return slot_on(id, 0);
    return fail(Code::internal, "value %{} has no place yet", id);
  }
  // The slot of a weight, packed as this call's kernel wants it.
  int32_t packed_slot(const FlatCall& call, uint32_t input) {
    const FlatValue& v = value(call.inputs[input]);
    PackedWeight want{v.weight, call.device, call.prepared, input};
    auto& at = packed_[{want.weight, want.device, want.packing().id}];
    if (at == 0) {
      at = 1 + add_slot({.kind = Kind::weight,
                         .device = call.device,
                         .index = v.weight,
                         .packed = static_cast<int32_t>(schedule_.packed.size()),
                         .value = call.inputs[input],
                         .type = v.type});
      schedule_.packed.push_back(std::move(want));
    }
    return at - 1;
  }
  void add_copy(int32_t from, int32_t to) {
    if (from != to) schedule_.steps.push_back({.inputs = {from}, .outputs = {to}, .device = slot(to).device});
  }

  // The device of the memory that a value overwrites: the first device, if it has it.
  Result<int32_t> home_of(const FlatValue& v) {
    if (v.over < 0) return -1;
    if (value(v.over).state >= 0) return somewhere(v.over);
    return place(v.over, 0);
  }

  Status add_launch(FlatCall& call) {
    Step step{.device = call.device, .where = std::move(call.where), .from = std::move(call.from)};
    const auto* packings = call.prepared->plan.packings;
    for (uint32_t i = 0; i < call.inputs.size(); ++i) {
      const int32_t id = call.inputs[i];
      int32_t in = -1;
      if (packings && packings[i]) {
        in = packed_slot(call, i);
      } else if (id >= 0) {
        WEFT_TRY(in, slot_on(id, call.device));
      }
      step.inputs.push_back(in);
    }
    for (const int32_t id : call.outputs) {
      WEFT_TRY(const int32_t home, home_of(value(id)));
      if (home >= 0) place(id, 0) = add_over(id, home);
    }
    // Results that update or accumulate use the target's memory on this device.
    for (const auto& [output, input] : call.prepared->call->desc().updates)
      if (int32_t& at = place(call.outputs[output], call.device); call.device != 0 || at < 0)
        at = add_over(call.outputs[output], step.inputs[input]);
    if (call.onto >= 0) {
      WEFT_TRY(const int32_t onto, slot_on(call.onto, call.device));
      step.onto = {onto};
    }
    for (const int32_t id : call.outputs) step.outputs.push_back(slot_for(id, call.device));
    if (const uint64_t bytes = std::max(call.workspace, call.prepared->plan.workspace))
      step.workspace = add_slot({.device = call.device, .type = {DType::u8, {static_cast<int64_t>(bytes)}}});
    step.prepared = std::move(call.prepared);
    schedule_.steps.push_back(std::move(step));
    for (const int32_t id : call.outputs)  // what was updated elsewhere comes home
      if (call.device != 0 && place(id, 0) >= 0) add_copy(place(id, call.device), place(id, 0));
    return {};
  }

  // A copy goes to the home of the memory that it overwrites, or to its operand's device.
  Status add_move(const FlatCall& call) {
    const int32_t id = call.outputs[0];
    WEFT_TRY(int32_t from, somewhere(call.inputs[0]));
    WEFT_TRY(const int32_t home, home_of(value(id)));
    if (home >= 0) place(id, 0) = add_over(id, home);
    add_copy(from, home >= 0 ? place(id, 0) : slot_for(id, slot(from).device));
    return {};
  }

  const program::CompiledProgram& program_;
  FlatProgram flat_;
  Ids slots_;
  int32_t next_port_ = 0;
  std::map<std::tuple<int32_t, uint32_t, std::string>, int32_t>
      packed_;  // slot + 1, by weight, device and id
  Schedule schedule_;
};

}  // namespace

Result<Schedule> order(const program::CompiledProgram& program, FlatProgram flat,
                       std::span<seam::Device* const> devices) {
  return Orderer(program, std::move(flat), devices).run();
}

}  // namespace weft::link
