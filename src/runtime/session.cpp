#include "runtime/session.h"

#include <algorithm>

#include "base/shown.h"
#include "link/recipe.h"
#include "link/resolve_types.h"
#include "runtime/busy.h"
#include "runtime/constants.h"

// A session opens: memory of states and constants, and their values later.
namespace weft::runtime {

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

Session::Session(std::shared_ptr<const program::CompiledProgram> program, std::vector<seam::Device*> devices,
                 const Policy& policy)
    : program_(std::move(program)), devices_(std::move(devices)), policy_(policy), rest_(program_) {}

Session::~Session() {
  (void)synchronize();  // an error that nobody asked for in time has nowhere to go
}

static bool fits(const program::DeviceCode& code, std::span<seam::Device* const> devices) {
  return std::ranges::any_of(
      devices, [&](const seam::Device* d) { return seam::capability_hash(*d) == code.capability; });
}

std::vector<program::SkippedSection> unused_code(const program::CompiledProgram& program,
                                                 std::span<seam::Device* const> devices) {
  std::vector<program::SkippedSection> out;
  for (const auto& code : program.device_code) {
    if (fits(code, devices)) continue;
    uint64_t size = 0;
    for (const auto& [key, blob] : code.artefacts) size += blob.size;
    std::string here;
    for (const auto* d : devices) here += (here.empty() ? "" : ", ") + seam::device_words(*d);
    out.push_back(
        {"device code", size, fmt::format("it was compiled for {}, and here is {}", code.device, here)});
  }
  return out;
}

static std::unique_ptr<seam::OfferedArtefacts> offered(const program::CompiledProgram& program,
                                                       std::span<seam::Device* const> devices) {
  std::vector<seam::Artefact> all;
  for (const auto& code : program.device_code)
    if (fits(code, devices))
      for (const auto& [key, blob] : code.artefacts) all.push_back({key, {blob.data, blob.size}, blob.owner});
  return all.empty() ? nullptr : std::make_unique<seam::OfferedArtefacts>(std::move(all));
}

Status Session::load(const Present& present, bool whole) {
  offered_ = offered(*program_, devices_);
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

seam::BufferRef Session::state_memory(std::string_view name) const {
  const auto at = std::ranges::find(program_->states, name, &program::StateSpec::name);
  return at == program_->states.end() ? seam::BufferRef()
                                      : states_[static_cast<size_t>(at - program_->states.begin())];
}

Result<seam::BufferRef> Session::first_memory(const program::StateSpec& state) {
  WEFT_TRY(const auto type, link::concrete(program_->values[static_cast<size_t>(state.before)], {}));
  WEFT_TRY(auto buffer, devices_[0]->allocate_unpooled(type.bytes()));
  if (state.blob >= 0) {
    const auto& b = program_->blobs[static_cast<size_t>(state.blob)];
    WEFT_CHECK(queues_[0]->copy_in(*buffer.get(), 0, b.data, b.size).at(shown(state.name)));
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

static Result<size_t> find_state(const program::CompiledProgram& p, std::string_view name) {
  for (size_t i = 0; i < p.states.size(); ++i)
    if (p.states[i].name == name) return i;
  return invalid("{} has no state named '{}'", shown(p.name), shown(name));
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
  now.weights_file.clear();
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
