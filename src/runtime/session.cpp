#include "runtime/session.h"

#include <algorithm>
#include <bit>

#include "link/recipe.h"
#include "link/resolve_types.h"
#include "runtime/constants.h"

namespace weft::runtime {
namespace {

// Marks the session as running, for other threads to see.
class Busy {
 public:
  explicit Busy(std::atomic<bool>& flag) : flag_(flag), mine_(!flag.exchange(true)) {}
  ~Busy() {
    if (mine_) flag_ = false;
  }
  Status status() const {
    return mine_ ? Status() : invalid("this session is running on another thread; open one session a thread");
  }

 private:
  std::atomic<bool>& flag_;
  bool mine_;
};

std::vector<HostView> views(std::span<const HostTensor> tensors) {
  std::vector<HostView> all;
  for (const HostTensor& t : tensors) all.push_back({t.type, t.bytes});
  return all;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const program::CompiledProgram> program,
                                                 std::vector<seam::Device*> devices, const Policy& policy,
                                                 const Present& present) {
  if (devices.empty()) return invalid("a session needs a device");
  std::unique_ptr<Session> s(new Session(std::move(program), std::move(devices), policy));
  WEFT_CHECK(s->load(present, false));
  return s;
}

Result<std::unique_ptr<Session>> Session::create_whole(
    std::shared_ptr<const program::CompiledProgram> program, std::vector<seam::Device*> devices,
    const Policy& policy) {
  std::unique_ptr<Session> s(new Session(std::move(program), std::move(devices), policy));
  WEFT_CHECK(s->load({}, true));
  return s;
}

Session::~Session() {
  (void)synchronize();  // an error that nobody asked for in time has nowhere to go
}

Status Session::load(const Present& present, bool whole) {
  for (auto* device : devices_) {
    WEFT_TRY(auto queue, device->open_queue());
    queues_.push_back(std::move(queue));
  }
  const auto there = [&](const std::string& name) {
    return present ? present(name, *devices_[0]) : seam::BufferRef();
  };
  for (const auto& s : program_->states) {
    states_.push_back(there(s.name));
    if (states_.back()) {
      shared_.push_back(states_.back());
    } else {
      WEFT_TRY(states_.back(), first_memory(s));
    }
  }
  std::vector<seam::BufferRef> given;
  for (const auto& w : program_->weights) given.push_back(there(w.name));
  if (whole)
    weights_.emplace(*rest_, devices_);
  else
    WEFT_CHECK(make_constants(given));
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) continue;
    shared_.push_back(given[i]);
    weights_->take(i, std::move(given[i]));
  }
  return synchronize();
}

// Memory of a caller may change, so it is no constant.
Status Session::make_constants(const std::vector<seam::BufferRef>& given) {
  std::vector<bool> constant;
  for (size_t i = 0; i < given.size(); ++i) constant.push_back(!given[i] && program_->weights[i].blob >= 0);
  auto parts = link::split_recipe(*program_, constant);
  if (parts) rest_ = std::make_shared<const program::CompiledProgram>(std::move(parts->rest));
  weights_.emplace(*rest_, devices_);
  if (!parts) return {};
  const auto recipe = std::make_shared<const program::CompiledProgram>(std::move(parts->recipe));
  WEFT_TRY(auto made, runtime::make_constants(recipe, devices_, policy_));
  for (size_t i = 0; i < made.size(); ++i) weights_->take(given.size() + i, std::move(made[i]));
  return {};
}

bool Session::holds(const void* buffer) const {
  const auto is = [&](const seam::BufferRef& b) { return b.get() == buffer; };
  return std::ranges::any_of(states_, is) || weights_->holds(buffer);
}

Result<seam::BufferRef> Session::first_memory(const program::StateSpec& state) {
  WEFT_TRY(const auto type, link::concrete(program_->values[static_cast<size_t>(state.before)], {}));
  WEFT_TRY(auto buffer, devices_[0]->allocate_unpooled(type.bytes()));
  if (state.blob >= 0) {
    const auto& b = program_->blobs[static_cast<size_t>(state.blob)];
    WEFT_CHECK(queues_[0]->copy_in(*buffer.get(), 0, b.data, b.size).at(state.name));
  }
  return buffer;
}

Status Session::synchronize() {
  Status first;
  for (auto& q : queues_) {
    Status s = q->synchronize();
    if (first.ok()) first = std::move(s);
  }
  return first;
}

Result<Bindings> Session::bind(std::span<const seam::ConcreteType* const> inputs) const {
  if (inputs.size() != program_->inputs.size())
    return invalid("{} takes {} inputs, got {}", program_->name, program_->inputs.size(), inputs.size());
  Bindings bindings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& port = program_->inputs[i];
    const auto& want = program_->values[static_cast<size_t>(port.value)].type;
    const auto& have = *inputs[i];
    const auto mismatch = [&](std::string_view why) {
      return invalid("input {} of {} is {}, got {}{}{}", port.name, program_->name, text(want), text(have),
                     why.empty() ? "" : ": ", why);
    };
    if (have.dtype != want.dtype || have.shape.size() != want.shape.size()) return mismatch("");
    for (size_t d = 0; d < have.shape.size(); ++d)
      if (Status s = unify(want.shape[d], have.shape[d], bindings); !s.ok()) return mismatch(s.message());
  }
  for (const auto& s : program_->symbols) {
    const int64_t* v = bindings.find(s.name);
    if (!v) return invalid("no input gives a value to symbol {}", s.name);
    if (*v < s.min || *v > s.max)
      return invalid("symbol {} must be in {}..{}, got {}", s.name, s.min, s.max, *v);
  }
  return bindings;
}

Status Session::check_bytes(std::span<const HostView> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].bytes.size() != inputs[i].type.bytes())
      return invalid("input {} of {} is {}, got {} bytes", program_->inputs[i].name, program_->name,
                     text(inputs[i].type), inputs[i].bytes.size());
  return {};
}

Result<BoundSchedule*> Session::bound_for(const Bindings& bindings) {
  for (auto at = bound_.begin(); at != bound_.end(); ++at)
    if (at->bindings == bindings) {
      std::rotate(bound_.begin(), at, at + 1);
      return bound_.front().schedule.get();
    }
  auto room = schedule_with_room(bindings, false);
  if (!room.ok() && room.status().code() == Code::out_of_memory && roof_of(bindings) != bindings)
    room = schedule_with_room(bindings, true);  // these sizes may fit where the next power of two does not
  if (!room.ok()) return room.take_status();
  auto schedule = std::move(room).value();
  const auto home = [this, packed = schedule.packed](const link::BufferAllocation& slot) {
    return home_of(packed, slot);
  };
  auto bound = BoundSchedule::make(std::move(schedule), queues_, home);
  if (bound_.size() == kMostSchedules) {
    WEFT_CHECK(synchronize());  // its buffers may still be in use
    bound_.pop_back();
  }
  bound_.push_front({bindings, std::move(bound)});
  return bound_.front().schedule.get();
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
  WEFT_CHECK(weights_->fill(*linked));
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

seam::Buffer* Session::home_of(std::span<const link::PackedWeight> packed,
                               const link::BufferAllocation& slot) const {
  using Kind = link::BufferAllocation::Kind;
  if (slot.kind == Kind::arena) return arenas_[slot.device].get();
  if (slot.kind == Kind::state) return states_[static_cast<size_t>(slot.index)].get();
  return weights_->memory(packed, slot);
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

Status Session::use_own_ports() {
  WEFT_TRY(const auto* own, current_->own_ports());
  const auto same = [](const auto& a, const auto& b) { return a.get() == b.get(); };
  if (!std::ranges::equal(current_->ports(), *own, same)) current_->bind(*own);
  return {};
}

Status Session::put(std::span<const HostView> inputs) {
  SmallVector<const seam::ConcreteType*, 8> types;
  for (const auto& in : inputs) types.push_back(&in.type);
  WEFT_CHECK(choose_schedule(types));
  WEFT_CHECK(check_bytes(inputs));
  WEFT_CHECK(use_own_ports());
  const Trace::Timed timed(trace_, "copy", "inputs");
  for (size_t i = 0; i < inputs.size(); ++i)
    WEFT_CHECK(
        queues_[0]->copy_in(*current_->ports()[i].get(), 0, inputs[i].bytes.data(), inputs[i].bytes.size()));
  return {};
}

static Status none_being_prepared() {
  if (!seam::Together::open()) return {};
  return invalid("execute: the kernels that this thread prepares are not finished");
}

Status Session::enqueue() {
  if (!current_ || !current_->is_bound()) return invalid("execute: set_inputs comes first");
  WEFT_CHECK(none_being_prepared());
  return shared_.empty() ? current_->enqueue(trace_) : enqueue_in_turn({});
}

// Orders the run among the other work on the ports and on shared memory.
Status Session::enqueue_in_turn(std::span<const seam::BufferRef> ports) {
  WEFT_CHECK(follow_eager(ports));
  const Status enqueued = current_->enqueue(trace_);
  const Status marked = leave_to_eager(ports);  // of a failed run too: some of its steps may run
  WEFT_CHECK(enqueued);
  return marked;
}

Result<std::vector<HostTensor>> Session::take() {
  if (!current_ || !current_->is_bound()) return invalid("outputs: set_inputs comes first");
  WEFT_CHECK(synchronize());
  const Trace::Timed timed(trace_, "copy", "outputs");
  std::vector<HostTensor> out;
  for (const int32_t s : schedule().outputs) {
    const auto& type = slot(s).type;
    out.push_back({type, std::vector<std::byte>(type.bytes())});
    WEFT_CHECK(
        queues_[0]->copy_out(out.back().bytes.data(), current_->memory(s), slot(s).offset, type.bytes()));
  }
  return out;
}

Result<std::vector<HostTensor>> Session::run(std::span<const HostTensor> inputs) {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  WEFT_CHECK(put(views(inputs)));
  WEFT_CHECK(enqueue());
  return take();
}

Status Session::run_into(std::span<const HostView> inputs, std::span<const std::span<std::byte>> outputs) {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  if (outputs.size() != program_->outputs.size())
    return invalid("{} gives {} outputs, got memory for {}", program_->name, program_->outputs.size(),
                   outputs.size());
  WEFT_CHECK(put(inputs));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].empty()) WEFT_CHECK(check_output(i, outputs[i].size()));
  WEFT_CHECK(enqueue());
  WEFT_CHECK(synchronize());
  const Trace::Timed timed(trace_, "copy", "outputs");
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].empty()) WEFT_CHECK(copy_output(i, outputs[i]));
  return {};
}

Result<std::vector<seam::ConcreteType>> Session::output_types(std::span<const HostView> inputs) {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  SmallVector<const seam::ConcreteType*, 8> types;
  for (const auto& in : inputs) types.push_back(&in.type);
  WEFT_CHECK(choose_schedule(types));
  std::vector<seam::ConcreteType> out;
  for (const int32_t s : schedule().outputs) out.push_back(slot(s).type);
  return out;
}

Status Session::check_output(size_t i, size_t bytes) const {
  const auto& type = slot(schedule().outputs[i]).type;
  if (bytes == type.bytes()) return {};
  return invalid("output {} of {} is {}, {} bytes; got memory for {}", program_->outputs[i].name,
                 program_->name, text(type), type.bytes(), bytes);
}

Status Session::copy_output(size_t i, std::span<std::byte> to) {
  const int32_t from = schedule().outputs[i];
  return queues_[0]->copy_out(to.data(), current_->memory(from), slot(from).offset, to.size());
}

Status Session::fetch(size_t output, std::span<std::byte> to) {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  if (!current_ || !current_->is_bound())
    return invalid("{} has no outputs: it did not run yet", program_->name);
  if (output >= program_->outputs.size())
    return invalid("{} gives {} outputs, there is no number {}", program_->name, program_->outputs.size(),
                   output);
  WEFT_CHECK(check_output(output, to.size()));
  return copy_output(output, to);
}

Result<std::vector<DeviceArray>> Session::run_on(std::span<const DeviceArray> inputs) {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  SmallVector<const seam::ConcreteType*, 8> types;
  for (const auto& in : inputs) types.push_back(&in.type);
  WEFT_CHECK(choose_schedule(types));
  std::vector<seam::BufferRef> ports;
  for (const auto& in : inputs) ports.push_back(in.buffer);
  std::vector<DeviceArray> out;
  for (const int32_t s : schedule().outputs) {
    WEFT_TRY(auto buffer, device().allocate(slot(s).type.bytes()));
    ports.push_back(buffer);
    out.push_back({slot(s).type, std::move(buffer)});
  }
  WEFT_CHECK(none_being_prepared());
  current_->bind(ports);
  const Status enqueued = enqueue_in_turn(ports);
  current_->unbind();
  WEFT_CHECK(enqueued);
  return out;
}

// Orders the run after work of other queues on the ports and on shared memory.
Status Session::follow_eager(std::span<const seam::BufferRef> ports) {
  if (!device().ordered()) return {};
  uint64_t point = 0;
  {
    const std::lock_guard lock(device().eager_mutex());
    WEFT_TRY(point, device().eager_queue().mark());
  }
  WEFT_CHECK(queues_[0]->wait(device().eager_queue(), point));
  for (const auto& list : {ports, std::span<const seam::BufferRef>(shared_)})
    for (const auto& buffer : list) WEFT_CHECK(device().order(*queues_[0], *buffer.get()));
  return {};
}

// Later uses of that memory are ordered after this run.
Status Session::leave_to_eager(std::span<const seam::BufferRef> ports) {
  if (!device().ordered()) return {};
  WEFT_TRY(const uint64_t point, queues_[0]->mark());
  for (const auto& list : {ports, std::span<const seam::BufferRef>(shared_)})
    for (const auto& buffer : list) device().used(*buffer.get(), *queues_[0], point);
  return {};
}

Status Session::wait() {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  return synchronize();
}

Status Session::set_inputs(std::span<const HostTensor> inputs) {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  return put(views(inputs));
}

Status Session::execute() {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  return enqueue();
}

Result<std::vector<HostTensor>> Session::outputs() {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  return take();
}

static Result<size_t> find_state(const program::CompiledProgram& p, std::string_view name) {
  for (size_t i = 0; i < p.states.size(); ++i)
    if (p.states[i].name == name) return i;
  return invalid("{} has no state named '{}'", p.name, name);
}

Result<HostTensor> Session::read_state(size_t i) {
  WEFT_TRY(const auto type,
           link::concrete(program_->values[static_cast<size_t>(program_->states[i].before)], {}));
  HostTensor out{type, std::vector<std::byte>(type.bytes())};
  WEFT_CHECK(synchronize());
  WEFT_CHECK(queues_[0]->copy_out(out.bytes.data(), *states_[i].get(), 0, out.bytes.size()));
  return out;
}

Result<HostTensor> Session::state(std::string_view name) {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  WEFT_TRY(const size_t i, find_state(*program_, name));
  return read_state(i);
}

Result<program::CompiledProgram> Session::snapshot() {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  program::CompiledProgram now = *program_;
  if (!now.states.empty()) now.tests.clear();  // they begin with other values
  const auto users = [&](int32_t blob) {
    const auto uses = [&](const auto& spec) { return spec.blob == blob; };
    return std::ranges::count_if(now.states, uses) + std::ranges::count_if(now.weights, uses);
  };
  for (size_t i = 0; i < now.states.size(); ++i) {
    WEFT_TRY(const auto value, read_state(i));
    auto& blob = now.states[i].blob;
    if (blob < 0 || users(blob) > 1) {  // what others begin with stays what it is
      blob = static_cast<int32_t>(now.blobs.size());
      now.blobs.emplace_back();
    }
    now.blobs[static_cast<size_t>(blob)] = program::Blob::copy_of(value.bytes.data(), value.bytes.size());
  }
  return now;
}

Status Session::set_state(std::string_view name, const HostTensor& value) {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  WEFT_TRY(const size_t i, find_state(*program_, name));
  WEFT_TRY(const auto type,
           link::concrete(program_->values[static_cast<size_t>(program_->states[i].before)], {}));
  if (!(value.type == type) || value.bytes.size() != type.bytes())
    return invalid("state {} is {}, got {}", name, text(type), text(value.type));
  return queues_[0]->copy_in(*states_[i].get(), 0, value.bytes.data(), value.bytes.size());
}

}  // namespace weft::runtime
