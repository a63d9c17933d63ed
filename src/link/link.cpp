#include <algorithm>

#include "link/lanes.h"
#include "link/order.h"
#include "link/place.h"
#include "link/schedule.h"
#include "link/share.h"

namespace weft::link {

// One launch reads and writes slots of one arena, so a device that can't read and write one buffer in a
// dispatch can't have an arena.
static Status check_devices(std::span<seam::Device* const> devices) {
  if (devices.empty()) return invalid("link: no device was given");
  for (const auto* d : devices)
    if (!d->capability().read_write_buffer)
      return fail(Code::unsupported,
                  "{} can't read and write one buffer in a dispatch; arenas are not split yet", d->name());
  return {};
}

static uint64_t total(const std::vector<ArenaSize>& arenas) {
  uint64_t bytes = 0;
  for (const auto& a : arenas) bytes += a.bytes;
  return bytes;
}

// Bytes of the slots outside the arenas: states, weights, inputs and outputs.
static uint64_t bytes_beside(const Schedule& schedule) {
  uint64_t bytes = 0;
  for (const auto& s : schedule.slots)
    if (s.same_as < 0 && s.kind != BufferAllocation::Kind::arena) bytes += s.type.bytes();
  return bytes;
}

// Steps of different lanes may run concurrently, so their slots should not share memory. If that costs more
// than a quarter of the program's memory, slots share it, and the steps are ordered accordingly.
static void plan_arenas(Schedule& schedule) {
  set_dependencies(schedule, Conflicts::values);
  const Lanes lanes(schedule);
  schedule.arenas = plan_memory(schedule.slots, schedule.devices);
  if (lanes.count() > 1) {
    auto slots = schedule.slots;
    const auto arenas = plan_memory(slots, schedule.devices, lanes.lifetimes(schedule));
    constexpr uint64_t kHardlyAny = uint64_t{4} << 20;
    const uint64_t least = total(schedule.arenas), all = least + bytes_beside(schedule);
    if (total(arenas) <= least + std::max(all / 4, kHardlyAny))
      schedule.slots = std::move(slots), schedule.arenas = arenas, schedule.lanes = lanes.count();
  }
  set_dependencies(schedule);
}

// With `known`, repeats that order and the recorded choices; otherwise decides both.
static std::vector<uint32_t> share_memory(const program::CompiledProgram& program, FlatProgram& flat,
                                          Devices devices, const std::vector<uint32_t>* known) {
  join_pieces(program, flat, devices);
  auto calls = free_early(program, flat, known);
  add_in_place(program, flat, devices, known != nullptr);
  reuse_operands(program, flat, devices, known != nullptr);
  return calls;
}

Result<Schedule> link(const program::CompiledProgram& program, const Bindings& bindings,
                      std::span<seam::Device* const> devices, const Policy& policy, const Packings& packings,
                      Sharing sharing) {
  WEFT_CHECK(check_devices(devices));
  WEFT_TRY(auto flat, place(program, bindings, devices, policy, packings));
  std::vector<uint32_t> calls;
  if (sharing == Sharing::all) calls = share_memory(program, flat, devices, nullptr);
  WEFT_TRY(auto schedule, order(program, std::move(flat), devices));
  schedule.order = std::move(calls);
  set_lifetimes(schedule);
  plan_arenas(schedule);
  return schedule;
}

// Does each call that was prepared to accumulate have a target?
static bool adds_as_decided(const FlatProgram& flat) {
  return std::ranges::all_of(flat.calls, [&](const FlatCall& call) {
    return !call.prepared || flat.choices[call.choice].adds == 0 || call.onto >= 0;
  });
}

// Equal choices give slots and steps in the same order.
static bool fits(const Schedule& schedule, const Schedule& roof) {
  const auto no_larger = [](const BufferAllocation& a, const BufferAllocation& b) {
    return a.kind == b.kind && a.index == b.index && a.device == b.device && a.packed == b.packed &&
           a.same_as == b.same_as && a.type.bytes() <= b.type.bytes();
  };
  const auto same_packing = [](const PackedWeight& a, const PackedWeight& b) {
    return std::string_view(a.packing().id) == b.packing().id;
  };
  return schedule.steps.size() == roof.steps.size() && schedule.choices.size() == roof.choices.size() &&
         std::ranges::equal(schedule.packed, roof.packed, same_packing) &&
         std::ranges::equal(schedule.slots, roof.slots, no_larger);
}

Result<Schedule> resize(const Schedule& roof, const program::CompiledProgram& program,
                        const Bindings& bindings, const Policy& policy, const Packings& packings) {
  WEFT_TRY(auto flat, place(program, bindings, roof.devices, policy, packings, &roof.choices));
  if (!roof.order.empty()) {
    const bool same = share_memory(program, flat, roof.devices, &roof.order) == roof.order;
    if (!same || !adds_as_decided(flat))
      return fail(Code::unsupported, "for these sizes, values can't share memory in the same way");
  }
  WEFT_TRY(auto schedule, order(program, std::move(flat), roof.devices));
  schedule.order = roof.order;
  if (!fits(schedule, roof)) return fail(Code::unsupported, "for these sizes, something needs more memory");
  for (size_t i = 0; i < schedule.slots.size(); ++i) {
    BufferAllocation& slot = schedule.slots[i];
    const BufferAllocation& there = roof.slots[i];
    slot.offset = there.offset, slot.first_step = there.first_step, slot.last_step = there.last_step;
    if (slot.same_as >= 0) slot.offset = roof.slots[static_cast<size_t>(slot.same_as)].offset + slot.within;
  }
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    schedule.steps[i].lane = roof.steps[i].lane;
    if (schedule.steps[i].prepared) schedule.steps[i].prepared->why = roof.steps[i].prepared->why;
  }
  schedule.arenas = roof.arenas, schedule.lanes = roof.lanes;
  set_dependencies(schedule);
  return schedule;
}

}  // namespace weft::link
