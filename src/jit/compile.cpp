#include "compiler/compile.h"

#include <array>
#include <map>

#include "eager/tensor_impl.h"
#include "eager/trace_state.h"
#include "jit/target.h"
#include "runtime/devices.h"
#include "runtime/session.h"
#include "weft/jit.h"
#include "weft/pieces.h"

namespace weft {
namespace {

Result<std::shared_ptr<runtime::Session>> open_session(program::CompiledProgram program,
                                                       const CompileOptions& options,
                                                       const runtime::Present& present = {}) {
  auto shared = std::make_shared<const program::CompiledProgram>(std::move(program));
  WEFT_TRY(auto devices, runtime::devices_for(options.backend, options.policy));
  WEFT_TRY(auto session,
           runtime::Session::create(std::move(shared), std::move(devices), options.policy, present));
  return std::shared_ptr<runtime::Session>(std::move(session));
}

/// The captured tensors of a trace, by the graph's names.
struct Capture {
  Tensor tensor;
  bool state;
};
using Captured = std::map<std::string, Capture>;
Captured captured_by(const Traced& traced) {
  Captured all;
  for (size_t i = 0; i < traced.states.size(); ++i)
    all[traced.graph->states[i].name] = {traced.states[i], true};
  for (size_t i = 0; i < traced.weights.size(); ++i)
    all[traced.graph->weights[i].name] = {traced.weights[i], false};
  return all;
}

// The program's bytes. For borrowed memory and for states, on the host, the memory itself: a session has its
// own states, and saves those.
compiler::WeightSource values_of(const Captured& captured, bool take) {
  return [&captured, take](const std::string& name) -> Result<program::Blob> {
    const auto at = captured.find(name);
    if (at == captured.end()) return fail(Code::internal, "the trace captured nothing named {}", name);
    const auto& [tensor, state] = at->second;
    const eager::TensorImpl& impl = *tensor.impl();
    if ((take || state) && !impl.irregular && eager::device_of(impl).host_memory())
      return program::Blob{static_cast<const std::byte*>(impl.buffer->handle) + impl.c.dl.byte_offset,
                           impl.bytes(), std::make_shared<Tensor>(tensor)};
    const auto bytes = tensor.to_bytes();
    return program::Blob::copy_of(bytes.data(), bytes.size());
  };
}

/// The memory of tensors that a session works in: locked against writes until the session ends.
class Taken {
 public:
  Taken() = default;
  Taken(const Taken&) = delete;
  ~Taken() {
    for (const auto& b : held_) b->holders.fetch_sub(1, std::memory_order_relaxed);
  }
  // Waits for enqueued work on it, since the session has its own queue.
  runtime::Present from(const Captured& captured) {
    return [&captured, this](const std::string& name, const seam::Device& device) {
      const auto at = captured.find(name);
      if (at == captured.end()) return seam::BufferRef();
      const eager::TensorImpl& impl = *at->second.tensor.impl();
      if (!eager::device_of(impl).shares_memory(device) || impl.irregular || impl.c.dl.byte_offset != 0)
        return seam::BufferRef();
      auto& holders = impl.buffer->holders;
      uint8_t count = holders.load(std::memory_order_relaxed);
      do {  // of too many sessions, or memory that is only read: this program works in a copy
        if (count >= UINT8_MAX - 1) return seam::BufferRef();
      } while (!holders.compare_exchange_weak(count, count + 1, std::memory_order_relaxed));
      held_.push_back(impl.buffer);
      return impl.buffer;
    };
  }

 private:
  std::vector<seam::BufferRef> held_;
};

void wait_for(const Captured& captured) {
  for (const auto& [name, capture] : captured) {
    seam::Device& device = eager::device_of(*capture.tensor.impl());
    if (!device.ordered()) continue;
    std::lock_guard lock(device.eager_mutex());
    raise_if(device.eager_queue().synchronize());
  }
}

Tensor to_tensor(const runtime::HostTensor& t, const runtime::Session& session) {
  return Tensor::from_bytes(t.bytes, t.type.shape, t.type.dtype, session.backend());
}

}  // namespace

Compiled compile(const TracedFunction& function, const std::vector<InputSpec>& inputs,
                 const CompileOptions& options) {
  const Traced traced = trace(function, inputs);
  const Captured captured = captured_by(traced);
  wait_for(captured);
  auto program = value_or_raise(compiler::compile(
      *traced.graph, values_of(captured, options.take_captured),
      {.name = options.name, .fuse = options.fuse, .has_kernel = kernels_of(options.backend)}));
  if (!options.take_captured) return Compiled(value_or_raise(open_session(std::move(program), options)));
  auto taken = std::make_shared<Taken>();
  auto session = value_or_raise(open_session(std::move(program), options, taken->from(captured)));
  auto* const all = session.get();
  return Compiled({all, [session = std::move(session), taken](auto*) mutable { session.reset(); }});
}

Compiled load_program(const std::string& path, const CompileOptions& options) {
  return Compiled(value_or_raise(open_session(value_or_raise(compiler::read_file(path)), options)));
}

std::map<std::string, Tensor> load_weights(const std::string& path, const std::string& backend) {
  const auto p = value_or_raise(compiler::read_file(path));
  std::map<std::string, Tensor> all;
  // A state that the file has no value for begins as zeros.
  const auto add = [&](const std::string& name, program::ValueId value, int32_t blob) {
    const TensorType& type = p.values[static_cast<size_t>(value)].type;
    const auto sizes = value_or_raise(evaluate(type.shape, {}));
    std::vector<std::byte> zeros;
    if (blob < 0) zeros.resize(static_cast<size_t>(element_count(sizes)) * byte_size(type.dtype));
    const auto* from = blob < 0 ? nullptr : &p.blobs[static_cast<size_t>(blob)];
    const auto bytes = from ? std::span(from->data, from->size) : std::span<const std::byte>(zeros);
    if (!all.emplace(name, Tensor::from_bytes(bytes, sizes, type.dtype, backend)).second)
      throw Error(invalid("{}: a weight and a state are both called {}", path, name));
  };
  for (const auto& w : p.weights) add(w.name, w.value, w.blob);
  for (const auto& s : p.states) add(s.name, s.before, s.blob);
  return all;
}

std::vector<Tensor> Compiled::operator()(const std::vector<Tensor>& inputs) {
  auto out = enqueue(inputs);
  wait();
  return out;
}

// Row-major tensors on the program's device are used in place, but for those that the run may overwrite.
std::vector<Tensor> Compiled::enqueue(const std::vector<Tensor>& inputs) {
  if (eager::active_trace()) throw Error(invalid("a compiled program can't be run inside a trace"));
  seam::Device& device = session_->device();
  std::vector<runtime::DeviceArray> in;
  for (const Tensor& t : inputs) {
    const IntList sizes = t.sizes();
    Tensor here = value_or_raise(eager::copy_to(t.impl()->irregular ? eager::regular_copy(t) : t, device));
    if (session_->holds(here.impl()->buffer.get())) here = eager::copy_of(here);
    in.push_back({{t.dtype(), sizes}, here.impl()->buffer});
  }
  std::vector<Tensor> out;
  for (auto& t : value_or_raise(session_->run_on(in)))
    out.push_back(Tensor(eager::make_impl(t.type.dtype, t.type.shape, std::move(t.buffer), &device)));
  return out;
}

void Compiled::wait() { raise_if(session_->wait()); }

void Compiled::run(std::span<const HostArray> inputs, std::span<const std::span<std::byte>> outputs) {
  std::array<runtime::HostView, 8> few;  // nothing is allocated for them
  std::vector<runtime::HostView> many(inputs.size() > few.size() ? inputs.size() : 0);
  const auto in = many.empty() ? std::span(few).first(inputs.size()) : std::span(many);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = {{inputs[i].dtype, IntList(inputs[i].sizes)}, inputs[i].bytes};
  raise_if(session_->run_into(in, outputs));
}

void Compiled::fetch(size_t output, std::span<std::byte> to) { raise_if(session_->fetch(output, to)); }

Tensor Compiled::state(const std::string& name) const {
  return to_tensor(value_or_raise(session_->state(name)), *session_);
}

std::vector<std::string> Compiled::state_names() const {
  std::vector<std::string> names;
  for (const auto& s : session_->program().states) names.push_back(s.name);
  return names;
}

static std::vector<InputSpec> specs_of(const program::CompiledProgram& p,
                                       std::span<const program::Port> ports) {
  std::vector<InputSpec> specs;
  for (const auto& port : ports) specs.push_back({port.name, p.values[static_cast<size_t>(port.value)].type});
  return specs;
}
std::vector<InputSpec> Compiled::inputs() const {
  return specs_of(session_->program(), session_->program().inputs);
}
std::vector<InputSpec> Compiled::outputs() const {
  return specs_of(session_->program(), session_->program().outputs);
}

bool Compiled::shares(const Tensor& t) const {
  const void* memory = memory_of(t);
  return memory && session_->holds(memory);
}

program::CompiledProgram Compiled::snapshot() const { return value_or_raise(session_->snapshot()); }
void Compiled::save(const std::string& path) const { raise_if(program::write_file(snapshot(), path)); }
std::string Compiled::text() const { return program::print(session_->program()); }
static const link::Schedule& last_schedule(const runtime::Session& session) {
  const auto* schedule = session.schedule_or_null();
  if (!schedule)
    throw Error(
        invalid("{} has no schedule yet: it is made for the sizes of the first run", session.program().name));
  return *schedule;
}
std::string Compiled::schedule_text() const { return link::print(last_schedule(*session_)); }
ArenaUse Compiled::arena() const {
  const auto& arena = last_schedule(*session_).arenas[0];
  return {arena.bytes, arena.live_peak};
}

}  // namespace weft
