#include <algorithm>
#include <bit>

#include "base/dim_expr.h"
#include "base/shown.h"
#include "runtime/session.h"

// The schedule of a run: for the sizes of its inputs, linked, resized, or kept from before, with its memory.
namespace weft::runtime {
namespace {

// Sizes that are symbols themselves say their values, whatever stands in front of them.
void bind_plain(const TensorType& want, const seam::ConcreteType& have, Bindings& bindings) {
  if (have.shape.size() != want.shape.size()) return;  // told later
  for (size_t d = 0; d < have.shape.size(); ++d) {
    const auto* e = want.shape[d].is_const() ? nullptr : detail::DimExpr::of(want.shape[d]);
    if (e && e->kind == detail::DimExpr::Kind::symbol)
      (void)bindings.bind(e->name, have.shape[d]);  // two values are told later
  }
}

}  // namespace

Result<Bindings> Session::bind(std::span<const seam::ConcreteType* const> inputs) const {
  if (inputs.size() != program_->inputs.size())
    return invalid("{} takes {} inputs, got {}", shown(program_->name), program_->inputs.size(),
                   inputs.size());
  Bindings bindings;
  const auto type_of = [&](size_t i) -> const TensorType& {
    return program_->values[static_cast<size_t>(program_->inputs[i].value)].type;
  };
  if (!program_->symbols.empty())
    for (size_t i = 0; i < inputs.size(); ++i) bind_plain(type_of(i), *inputs[i], bindings);
  // Then those that an expression tells, such as 2*seq; seq//2 is the same for several, and is only checked.
  if (bindings.all().size() < program_->symbols.size())
    for (size_t i = 0; i < inputs.size(); ++i)
      for (size_t d = 0; d < std::min(type_of(i).shape.size(), inputs[i]->shape.size()); ++d)
        (void)unify(type_of(i).shape[d], inputs[i]->shape[d], bindings);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& port = program_->inputs[i];
    const auto& want = type_of(i);
    const auto& have = *inputs[i];
    const auto mismatch = [&](std::string_view why) {
      return invalid("input {} of {} is {}, got {}{}{}", shown(port.name), shown(program_->name),
                     shown(text(want)), text(have), why.empty() ? "" : ": ", why);
    };
    if (have.dtype != want.dtype || have.shape.size() != want.shape.size()) return mismatch("");
    for (size_t d = 0; d < have.shape.size(); ++d)
      if (Status s = unify(want.shape[d], have.shape[d], bindings); !s.ok())
        return mismatch(fmt::format("axis {}: {}", d, s.message()));
  }
  for (const auto& s : program_->symbols) {
    const int64_t* v = bindings.find(s.name);
    if (!v) return invalid("no input gives a value to symbol {}", s.name);
    if (*v < s.min || *v > s.max)
      return invalid("symbol {} must be in {}..{}, got {}", s.name, s.min, s.max, *v);
  }
  return bindings;
}

Result<BoundSchedule*> Session::bound_for(const Bindings& bindings) {
  for (auto at = bound_.begin(); at != bound_.end(); ++at)
    if (at->bindings == bindings) {
      std::rotate(bound_.begin(), at, at + 1);
      return bound_.front().schedule.get();
    }
  if (!bound_.empty()) WEFT_CHECK(pack_staged());  // kernels of the next one take what is packed
  auto room = schedule_with_room(bindings, false);
  if (!room.ok() && room.status().code() == Code::out_of_memory && roof_of(bindings) != bindings)
    room = schedule_with_room(bindings, true);  // these sizes may fit where the next power of two does not
  if (!room.ok()) return room.take_status();
  auto schedule = std::move(room).value();
  const auto home = home_of(schedule.packed);
  auto bound = BoundSchedule::make(std::move(schedule), queues_, home);
  if (bound->lacks_weights())
    WEFT_CHECK(bound->stage([this](const link::PackedWeight& want, const seam::Buffer& to) {
      return weights_->pack(want, to, *queues_[want.device]);
    }));
  if (bound_.size() == kMostSchedules) {
    WEFT_CHECK(synchronize());  // its buffers may still be in use
    bound_.pop_back();
  }
  bound_.push_front({bindings, std::move(bound)});
  return bound_.front().schedule.get();
}

static std::vector<bool> none_staged(const link::Schedule& schedule) {
  return std::vector<bool>(schedule.packed.size());
}

Result<link::Schedule> Session::schedule_with_room(const Bindings& bindings, bool exact) {
  auto linked = [&]() -> Result<link::Schedule> {
    const Trace::Timed timed(trace_, "link", "link");
    seam::Together together;
    WEFT_TRY(auto schedule, exact ? link_exactly(bindings) : schedule_for(bindings));
    WEFT_CHECK(together.finish());
    return schedule;
  }();
  if (!linked.ok()) return linked.take_status();
  if (see_schedule_) see_schedule_(*linked);
  const Trace::Timed timed(trace_, "load", "weights and memory");
  WEFT_CHECK(weights_->fill(*linked, may_stage_ ? stageable(*linked) : none_staged(*linked)));
  WEFT_CHECK(make_room(*linked));
  return linked;
}

// Rounds the symbol with the widest range up to a power of two, at most its maximum; keeps the others.
Bindings Session::roof_of(const Bindings& bindings) const {
  const auto width = [](const Symbol& s) { return s.max - s.min; };
  const auto widest = std::ranges::max_element(program_->symbols, {}, width);
  Bindings roof;
  for (const auto& [name, value] : bindings.all()) {
    int64_t up = value;
    if (widest != program_->symbols.end() && name == widest->name && value > 0)
      up = std::min(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(value))), widest->max);
    (void)roof.bind(name, up);  // a name stands in it once
  }
  return roof;
}

link::Packings Session::packings() {
  return [this](int32_t weight, uint32_t device) {
    return weights_->packings(static_cast<size_t>(weight), device);
  };
}

Result<const link::Schedule*> Session::roof_for(const Bindings& roof) {
  const auto at = roofs_.find(roof.all());
  if (at != roofs_.end()) return &at->second;
  ++links_;
  WEFT_TRY(auto schedule, link::link(*rest_, roof, devices_, policy_, packings()));
  if (roofs_.size() == kMostRoofs) roofs_.erase(roofs_.begin());
  return &roofs_.emplace(roof.all(), std::move(schedule)).first->second;
}

Result<link::Schedule> Session::schedule_for(const Bindings& bindings) {
  const Bindings up = roof_of(bindings);
  auto roof = roof_for(up);
  if (roof.ok() && up == bindings) return *roof.value();
  if (roof.ok()) {
    auto schedule = link::resize(*roof.value(), *rest_, bindings, policy_, packings());
    if (schedule.ok() || schedule.status().code() != Code::unsupported) return schedule;
  }
  return link_exactly(bindings);  // what can't be had for larger sizes may be for these
}

Result<link::Schedule> Session::link_exactly(const Bindings& bindings) {
  ++links_;
  return link::link(*rest_, bindings, devices_, policy_, packings());
}

// All schedules share the arenas. If one must grow, the bound schedules that use it are dropped.
Status Session::make_room(const link::Schedule& schedule) {
  arenas_.resize(devices_.size());
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (arenas_[d] && arenas_[d]->bytes >= schedule.arenas[d].bytes) continue;
    WEFT_CHECK(synchronize());
    bound_.clear(), current_ = nullptr;
    arenas_[d] = {};
    WEFT_TRY(arenas_[d], devices_[d]->allocate_unpooled(schedule.arenas[d].bytes));
  }
  return {};
}

BoundSchedule::Home Session::home_of(std::vector<link::PackedWeight> packed) const {
  return [this, packed = std::move(packed)](const link::BufferAllocation& slot) {
    using Kind = link::BufferAllocation::Kind;
    if (slot.kind == Kind::arena) return arenas_[slot.device].get();
    if (slot.kind == Kind::state) return states_[static_cast<size_t>(slot.index)].get();
    return weights_->memory(packed, slot);
  };
}

// The packed weights of later runs, and of later schedules, are packed once and kept.
Status Session::pack_staged() {
  for (auto& [bindings, bound] : bound_) {
    if (!bound->lacks_weights()) continue;
    const Trace::Timed timed(trace_, "load", "weights and memory");
    WEFT_CHECK(weights_->fill(bound->schedule(), none_staged(bound->schedule())));
    bound->settle(home_of(bound->schedule().packed));
  }
  may_stage_ = false;
  return {};
}

bool Session::same_sizes(std::span<const seam::ConcreteType* const> inputs) const {
  if (!current_ || inputs.size() != schedule().inputs.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!(*inputs[i] == slot(schedule().inputs[i]).type)) return false;
  return true;
}

Status Session::choose_schedule(std::span<const seam::ConcreteType* const> inputs) {
  if (same_sizes(inputs)) return {};
  WEFT_TRY(const Bindings bindings, bind(inputs));
  WEFT_TRY(current_, bound_for(bindings));
  return {};
}

}  // namespace weft::runtime
