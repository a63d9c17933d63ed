#include "runtime/session.h"

#include "link/resolve_types.h"
#include "seam/ledger.h"
#include "seam/transfer.h"

namespace weft::runtime {
namespace {

// Marks the session as running; a second thread sees the mark.
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
  WEFT_CHECK(s->load(present));
  return s;
}

Session::~Session() {
  (void)synchronize();  // an error that nobody asked for in time has nowhere to go
}

Status Session::load(const Present& present) {
  for (auto* device : devices_) {
    WEFT_TRY(auto queue, device->open_queue());
    queues_.push_back(std::move(queue));
  }
  const auto there = [&](const std::string& name) {
    return present ? present(name, *devices_[0]) : seam::BufferRef();
  };
  for (const auto& s : program_->states) {
    states_.push_back(there(s.name));
    shared_.push_back(bool(states_.back()));
    if (!shared_.back()) {
      WEFT_TRY(states_.back(), filled(0, s.before, s.blob, s.name));
    }
  }
  for (const auto& w : program_->weights) {
    weights_.push_back(there(w.name));
    weights_.resize(weights_.size() + devices_.size() - 1);  // the other devices' come when a plan reads them
  }
  return synchronize();
}

bool Session::holds(const void* buffer) const {
  const auto is = [&](const seam::BufferRef& b) { return b.get() == buffer; };
  return std::ranges::any_of(states_, is) || std::ranges::any_of(weights_, is);
}

Result<seam::BufferRef> Session::filled(uint32_t device, int32_t value, int32_t blob,
                                        const std::string& name) {
  WEFT_TRY(const auto type, link::concrete(program_->values[static_cast<size_t>(value)], {}));
  WEFT_TRY(auto buffer, devices_[device]->allocate_unpooled(type.bytes()));
  if (blob >= 0) {
    const auto& b = program_->blobs[static_cast<size_t>(blob)];
    WEFT_CHECK(queues_[device]->copy_in(*buffer.get(), 0, b.data, b.size).at(name));
  }
  return buffer;
}

Status Session::fill_weights(const link::ExecutionPlan& plan) {
  for (const auto& slot : plan.slots) {
    if (slot.kind != link::BufferAllocation::Kind::weight) continue;
    auto& buffer = weights_[weight_on(slot)];
    if (buffer) continue;
    const auto& w = program_->weights[static_cast<size_t>(slot.index)];
    WEFT_TRY(buffer, filled(slot.device, w.value, w.blob, w.name));
  }
  return {};
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

Result<Session::Bound*> Session::bound_for(const Bindings& bindings) {
  for (auto at = bound_.begin(); at != bound_.end(); ++at)
    if ((*at)->bindings == bindings) {
      std::rotate(bound_.begin(), at, at + 1);
      return bound_.front().get();
    }
  auto fresh = std::make_unique<Bound>();
  fresh->bindings = bindings;
  seam::Together together;
  WEFT_TRY(auto plan, link::link(*program_, bindings, devices_, policy_));
  WEFT_CHECK(together.finish());
  if (see_plan_) see_plan_(plan);
  fresh->plan = std::make_unique<link::ExecutionPlan>(std::move(plan));
  WEFT_CHECK(bind_memory(*fresh));
  if (bound_.size() == kMostPlans) {
    WEFT_CHECK(synchronize());  // its buffers may still be in use
    bound_.pop_back();
  }
  bound_.push_front(std::move(fresh));
  return bound_.front().get();
}

const seam::Buffer& Session::buffer_of(const Bound& bound, const link::BufferAllocation& slot) const {
  const auto i = static_cast<size_t>(slot.index);
  switch (slot.kind) {
    case link::BufferAllocation::Kind::state: return *states_[i].get();
    case link::BufferAllocation::Kind::weight: return *weights_[weight_on(slot)].get();
    case link::BufferAllocation::Kind::external: return *bound.ports[i].get();
    case link::BufferAllocation::Kind::arena: break;
  }
  return *bound.arenas[slot.device].get();
}

Status Session::bind_memory(Bound& bound) {
  auto& plan = *bound.plan;
  WEFT_CHECK(fill_weights(plan));
  for (size_t d = 0; d < devices_.size(); ++d) {
    WEFT_TRY(auto arena, devices_[d]->allocate_unpooled(plan.arenas[d].bytes));
    bound.arenas.push_back(std::move(arena));
  }
  for (auto& slot : plan.slots) {
    const bool external = slot.kind == link::BufferAllocation::Kind::external;  // bound by each run
    if (external) bound.external.push_back(static_cast<uint32_t>(bound.tensors.size()));
    const auto& i = info(slot.type.dtype);
    bound.tensors.push_back({.dl = {.data = external ? nullptr : buffer_of(bound, slot).handle,
                                    .device = devices_[slot.device]->dl(),
                                    .ndim = static_cast<int32_t>(slot.type.shape.size()),
                                    .dtype = {i.dlpack_code, static_cast<uint8_t>(8 * i.bytes), 1},
                                    .shape = slot.type.shape.data(),
                                    .strides = nullptr,
                                    .byte_offset = slot.offset},
                             .size = sizeof(weft_tensor),
                             .layout = 0,
                             .logical_shape = nullptr,
                             .alignment = 64});
  }
  size_t n = 0;
  for (const auto& step : plan.steps) n += step.inputs.size() + step.outputs.size();
  bound.operands.reserve(n);  // launches point into it
  for (auto& step : plan.steps) {
    const auto add = [&](const std::vector<int32_t>& slots) {
      const auto* first = bound.operands.data() + bound.operands.size();
      for (const int32_t s : slots)
        bound.operands.push_back(s < 0 ? nullptr : &bound.tensors[static_cast<size_t>(s)]);
      return first;
    };
    weft_launch l{.size = sizeof(weft_launch),
                  .reserved = 0,
                  .plan = step.plan ? &step.plan->prepared : nullptr,
                  .device = devices_[step.device]->c(),
                  .queue = queues_[step.device]->c(),
                  .inputs = nullptr,
                  .outputs = nullptr,
                  .workspace = nullptr};
    l.inputs = add(step.inputs), l.outputs = add(step.outputs);
    if (step.workspace >= 0) l.workspace = &bound.tensors[static_cast<size_t>(step.workspace)];
    bound.launches.push_back(l);
  }
  return {};
}

bool Session::same_sizes(std::span<const seam::ConcreteType* const> inputs) const {
  if (!current_ || inputs.size() != current_->plan->inputs.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!(*inputs[i] == slot(current_->plan->inputs[i]).type)) return false;
  return true;
}

Status Session::choose_plan(std::span<const seam::ConcreteType* const> inputs) {
  if (same_sizes(inputs)) return {};
  WEFT_TRY(const Bindings bindings, bind(inputs));
  WEFT_TRY(current_, bound_for(bindings));
  return {};
}

// The launches are given the memory where the ports lie this time.
void Session::bind_ports(std::vector<seam::BufferRef> ports) {
  current_->ports = std::move(ports), current_->has_ports = true;
  for (const uint32_t i : current_->external)
    current_->tensors[i].dl.data = buffer_of(*current_, current_->plan->slots[i]).handle;
}

Status Session::use_own_ports() {
  auto& own = current_->own;
  if (own.empty()) {
    std::vector<seam::BufferRef> made;
    for (const auto* list : {&current_->plan->inputs, &current_->plan->outputs})
      for (const int32_t s : *list) {
        WEFT_TRY(auto buffer, devices_[0]->allocate_unpooled(slot(s).type.bytes()));
        made.push_back(std::move(buffer));
      }
    own = std::move(made);
  }
  const auto same = [](const auto& a, const auto& b) { return a.get() == b.get(); };
  if (!current_->has_ports || !std::ranges::equal(current_->ports, own, same)) bind_ports(own);
  return {};
}

Status Session::put(std::span<const HostView> inputs) {
  SmallVector<const seam::ConcreteType*, 8> types;
  for (const auto& in : inputs) types.push_back(&in.type);
  WEFT_CHECK(choose_plan(types));
  WEFT_CHECK(check_bytes(inputs));
  WEFT_CHECK(use_own_ports());
  for (size_t i = 0; i < inputs.size(); ++i)
    WEFT_CHECK(
        queues_[0]->copy_in(*current_->own[i].get(), 0, inputs[i].bytes.data(), inputs[i].bytes.size()));
  return {};
}

Status Session::enqueue() {
  if (!current_ || !current_->has_ports) return invalid("execute: set_inputs comes first");
  if (seam::Together::open()) return invalid("execute: the plans that this thread prepares are not finished");
  const auto& steps = current_->plan->steps;
  seam::CError error;
  for (size_t i = 0; i < steps.size(); ++i) {
    const weft_launch& l = current_->launches[i];
    if (!l.plan) [[unlikely]] {
      WEFT_CHECK(copy_step(steps[i]).at("copy"));
      continue;
    }
    seam::Plan& plan = *steps[i].plan;
    const weft_code code = plan.kernel.launch(&l, error.out());
    plan.count();
    if (code != WEFT_OK) [[unlikely]]
      return error.status(code).at(fmt::format("{} (node \"{}\")", plan.kernel.id, steps[i].where));
  }
  return {};
}

Status Session::copy_step(const link::Step& step) {
  const auto& from = current_->plan->slots[static_cast<size_t>(step.inputs[0])];
  const auto& to = current_->plan->slots[static_cast<size_t>(step.outputs[0])];
  const auto &source = buffer_of(*current_, from), &target = buffer_of(*current_, to);
  const uint64_t bytes = from.type.bytes();
  if (from.device == to.device)
    return queues_[to.device]->copy(target, to.offset, source, from.offset, bytes);
  WEFT_CHECK(seam::transfer(*queues_[from.device], {source, from.offset}, *queues_[to.device],
                            {target, to.offset}, bytes));
  seam::ledger().copied(devices_[from.device]->name(), devices_[to.device]->name(), bytes);
  return {};
}

Result<std::vector<HostTensor>> Session::take() {
  if (!current_ || !current_->has_ports) return invalid("outputs: set_inputs comes first");
  WEFT_CHECK(synchronize());
  std::vector<HostTensor> out;
  for (const int32_t s : current_->plan->outputs) {
    const auto& slot = current_->plan->slots[static_cast<size_t>(s)];
    out.push_back({slot.type, std::vector<std::byte>(slot.type.bytes())});
    WEFT_CHECK(queues_[slot.device]->copy_out(out.back().bytes.data(), buffer_of(*current_, slot),
                                              slot.offset, slot.type.bytes()));
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
  const auto slot_of = [&](size_t i) -> const link::BufferAllocation& {
    return current_->plan->slots[static_cast<size_t>(current_->plan->outputs[i])];
  };
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].size() != slot_of(i).type.bytes())
      return invalid("output {} of {} is {}, {} bytes; got memory for {}", program_->outputs[i].name,
                     program_->name, text(slot_of(i).type), slot_of(i).type.bytes(), outputs[i].size());
  WEFT_CHECK(enqueue());
  WEFT_CHECK(synchronize());
  for (size_t i = 0; i < outputs.size(); ++i)
    WEFT_CHECK(queues_[slot_of(i).device]->copy_out(outputs[i].data(), buffer_of(*current_, slot_of(i)),
                                                    slot_of(i).offset, outputs[i].size()));
  return {};
}

Result<std::vector<DeviceArray>> Session::run_on(std::span<const DeviceArray> inputs) {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  SmallVector<const seam::ConcreteType*, 8> types;
  for (const auto& in : inputs) types.push_back(&in.type);
  WEFT_CHECK(choose_plan(types));
  std::vector<seam::BufferRef> ports;
  for (const auto& in : inputs) ports.push_back(in.buffer);
  std::vector<DeviceArray> out;
  for (const int32_t s : current_->plan->outputs) {
    WEFT_TRY(auto buffer, device().allocate(slot(s).type.bytes()));
    ports.push_back(buffer);
    out.push_back({slot(s).type, std::move(buffer)});
  }
  WEFT_CHECK(follow_eager(ports));
  bind_ports(std::move(ports));
  const Status enqueued = enqueue();
  const Status marked = leave_to_eager();
  current_->ports.clear(), current_->has_ports = false;
  WEFT_CHECK(enqueued);
  WEFT_CHECK(marked);
  return out;
}

// What the run reads was enqueued before it, and what it writes is not read any more by then.
Status Session::follow_eager(std::span<const seam::BufferRef> ports) {
  if (!device().ordered()) return {};
  uint64_t point = 0;
  {
    const std::lock_guard lock(device().eager_mutex());
    WEFT_TRY(point, device().eager_queue().mark());
  }
  WEFT_CHECK(queues_[0]->wait(device().eager_queue(), point));
  for (const auto& buffer : ports) WEFT_CHECK(device().order(*queues_[0], *buffer.get()));
  return {};
}

// Whoever uses the ports' memory next comes after this run.
Status Session::leave_to_eager() {
  if (!device().ordered()) return {};
  WEFT_TRY(const uint64_t point, queues_[0]->mark());
  for (const auto& buffer : current_->ports) device().used(*buffer.get(), *queues_[0], point);
  for (size_t i = 0; i < states_.size(); ++i)
    if (shared_[i]) device().used(*states_[i].get(), *queues_[0], point);
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
