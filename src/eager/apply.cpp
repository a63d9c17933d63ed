#include "eager/apply.h"

#include "eager/plan_cache.h"
#include "eager/slow_path.h"
#include "eager/tape.h"
#include "eager/trace_state.h"
#include "weft/policy_scope.h"

// The path of every eager op: key, plan cache, result tensors, launch.
namespace weft::eager {
namespace {

thread_local bool grad_on = true;
thread_local Policy policy;
thread_local PlanCache cache;

uint64_t policy_word() {
  return uint64_t(policy.fallback) | uint64_t{policy.decompose} << 8 | uint64_t{policy.determinism} << 16 |
         uint64_t{policy.precision} << 24;
}

void add_attr(KeyWords& key, const AttrValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return key.push_back(static_cast<uint64_t>(*i));
  if (const auto* f = std::get_if<double>(&value)) return key.push_back(std::bit_cast<uint64_t>(*f));
  if (const auto* dims = std::get_if<Shape>(&value)) {
    key.push_back(dims->size());
    for (const Dim d : *dims) key.push_back(d.bits());
    return;
  }
  const auto* s = std::get_if<std::string>(&value);
  const std::string& bytes = s ? *s : std::get<Bytes>(value).data;
  key.push_back(bytes.size());
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<size_t>(8, bytes.size() - i));
    key.push_back(word);
  }
}

// Everything that the choice of a kernel and the types of the results depend on. Lengths come before what
// they measure, so different calls have different words.
void build_key(KeyWords& key, const ir::OpDef& op, const seam::Device& device,
               std::span<const Tensor* const> inputs, std::span<const AttrValue> attrs) {
  key.push_back(reinterpret_cast<uint64_t>(&op));
  key.push_back(policy_word() | uint64_t{device.index()} << 32 | uint64_t{inputs.size()} << 48);
  for (const auto& a : attrs) add_attr(key, a);
  for (const Tensor* t : inputs) {
    if (!t || !*t) {
      key.push_back(~uint64_t{0});
      continue;
    }
    const TensorImpl& impl = *t->impl();
    if (impl.traced) [[unlikely]]
      throw Error(
          invalid("{}: an operand belongs to a trace that has ended, or to another thread's", op.name));
    key.push_back(uint64_t(impl.dtype) | uint64_t{impl.rank} << 8 | uint64_t{device_of(impl).index()} << 16);
    for (int i = 0; i < impl.rank; ++i) key.push_back(static_cast<uint64_t>(impl.dims[i]));
  }
}

seam::Device& pick_device(std::span<const Tensor* const> inputs) {
  for (const Tensor* t : inputs)
    if (t && *t && t->impl()->buffer) return device_of(*t->impl());
  return default_device();
}

void run_kernel(CachedCall& call, seam::Device& device, std::span<const Tensor* const> inputs,
                std::span<Tensor> outputs) {
  const weft_tensor* in[8];
  const weft_tensor* out[8];
  for (size_t i = 0; i < inputs.size(); ++i)
    in[i] = inputs[i] && *inputs[i] ? &inputs[i]->impl()->c : nullptr;
  for (size_t i = inputs.size(); i < call.plan->call->desc().inputs.size(); ++i) in[i] = nullptr;
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const auto& o = call.outputs[k];
    if (o.update >= 0) {
      outputs[k] = *inputs[static_cast<size_t>(o.update)];
    } else {
      auto buffer = device.allocate(o.bytes);
      if (!buffer.ok()) throw Error(buffer.take_status());
      outputs[k] = Tensor(make_impl(o.dtype, o.shape, std::move(buffer).value()));
    }
    out[k] = &outputs[k].impl()->c;
  }
  const uint64_t workspace = call.plan->prepared.workspace;
  Tensor scratch;
  if (workspace) {
    const int64_t size[] = {static_cast<int64_t>(workspace)};
    scratch = make_tensor(device, DType::u8, size);
  }
  const auto enqueue = [&] {
    return seam::launch(*call.plan, device.eager_queue(), in, out, workspace ? &scratch.impl()->c : nullptr);
  };
  Status status;
  if (device.ordered()) {
    std::lock_guard lock(device.eager_mutex());
    status = enqueue();
  } else {
    status = enqueue();
  }
  if (!status.ok()) throw Error(std::move(status));
}

void bump_versions(const ir::OpDef& op, std::span<const Tensor* const> inputs) {
  for (const auto& u : op.updates)
    if (u.input >= 0) {
      auto& version = inputs[static_cast<size_t>(u.input)]->impl()->buffer->version;
      version.store(version.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
}

void execute(const ir::OpDef& op, std::span<const Tensor* const> inputs, std::span<const AttrValue> attrs,
             std::span<Tensor> outputs) {
  seam::Device& device = pick_device(inputs);
  KeyWords key;
  build_key(key, op, device, inputs, attrs);
  const uint64_t hash = hash_words(key);
  CachedCall* call = cache.find(key, hash);
  if (!call) {
    CachedCall fresh = value_or_raise(resolve(op, device, inputs, attrs, policy));
    fresh.key = std::move(key), fresh.hash = hash;
    call = &cache.insert(std::move(fresh));
  }
  switch (call->kind) {
    case CachedCall::Kind::kernel: run_kernel(*call, device, inputs, outputs); break;
    case CachedCall::Kind::decompose: run_decomposition(op, device, inputs, attrs, outputs); break;
    case CachedCall::Kind::elsewhere:
      run_elsewhere(op, device, *call->elsewhere, inputs, attrs, outputs);
      break;
    case CachedCall::Kind::empty: break;
  }
  bump_versions(op, inputs);
}

}  // namespace

void apply(const ir::OpDef& op, std::span<const Tensor* const> inputs, std::span<const AttrValue> attrs,
           std::span<Tensor> outputs) {
  const bool taped = grad_on && wants_record(inputs);
  if (active_trace()) [[unlikely]] {
    record_node(op, inputs, attrs, outputs);
  } else {
    execute(op, inputs, attrs, outputs);
  }
  if (taped) raise_if(record(op, inputs, attrs, outputs));
}

bool wants_record(std::span<const Tensor* const> inputs) {
  for (const Tensor* t : inputs)
    if (t && *t && t->impl()->requires_grad) return true;
  return false;
}

CacheStats cache_stats() { return {cache.misses(), cache.entries()}; }
void clear_plan_cache() { cache.clear(); }
bool grad_enabled() { return grad_on; }
GradMode::GradMode(bool on) : before_(grad_on) { grad_on = on; }
GradMode::~GradMode() { grad_on = before_; }

}  // namespace weft::eager

namespace weft {

thread_local std::vector<bool> grad_modes;
NoGrad::NoGrad() {
  grad_modes.push_back(eager::grad_on);
  eager::grad_on = false;
}
NoGrad::~NoGrad() {
  eager::grad_on = grad_modes.back();
  grad_modes.pop_back();
}

PolicyScope::PolicyScope(const Policy& p) : before_(eager::policy) { eager::policy = p; }
PolicyScope::~PolicyScope() { eager::policy = before_; }
const Policy& current_policy() { return eager::policy; }

}  // namespace weft
