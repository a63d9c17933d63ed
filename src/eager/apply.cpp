#include "eager/apply.h"

#include "eager/call_cache.h"
#include "eager/slow_path.h"
#include "eager/tape.h"
#include "eager/trace_state.h"
#include "eager/update_log.h"
#include "seam/choice.h"
#include "weft/policy_scope.h"
#include "weft/trace.h"

// The path of every eager op: key, cache of calls, result tensors, launch.
namespace weft::eager {
namespace {

constinit thread_local bool grad_on = true;
constinit thread_local Policy policy;

// A plain pointer: every access to a thread_local object with a constructor checks whether it has run.
constinit thread_local CallCache* cache_there = nullptr;
[[gnu::noinline]] CallCache& first_cache() {
  thread_local CallCache cache;
  return *(cache_there = &cache);
}
CallCache& cache() { return cache_there ? *cache_there : first_cache(); }

size_t attr_words(const AttrValue& value) {
  if (const auto* dims = std::get_if<Shape>(&value)) return 1 + dims->size();
  if (const auto* s = std::get_if<std::string>(&value)) return 2 + s->size() / 8;
  if (const auto* b = std::get_if<Bytes>(&value)) return 2 + b->data.size() / 8;
  return 1;
}

CallKey::Writer with_attr(CallKey::Writer key, const AttrValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return key.add(static_cast<uint64_t>(*i)), key;
  if (const auto* f = std::get_if<double>(&value)) return key.add(std::bit_cast<uint64_t>(*f)), key;
  if (const auto* dims = std::get_if<Shape>(&value)) {
    key.add(dims->size());
    for (const Dim d : *dims) key.add(d.bits());
    return key;
  }
  const auto* s = std::get_if<std::string>(&value);
  const std::string& bytes = s ? *s : std::get<Bytes>(value).data;
  key.add(bytes.size());
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<size_t>(8, bytes.size() - i));
    key.add(word);
  }
  return key;
}

[[noreturn]] WEFT_COLD void throw_foreign(const ir::OpDef& op) {
  throw Error(invalid("{}: an operand belongs to a trace that has ended, or to another thread's", op.name));
}

[[noreturn]] WEFT_COLD void throw_no_room(const CachedCall& call, const CachedCall::Output& o, Status why) {
  throw Error(std::move(why).at(
      fmt::format("{}: {}{}", call.plan->call->desc().op, name(o.dtype), text(std::span(o.shape)))));
}

// Everything that determines the kernel and the types of the results. Lengths precede the data, so different
// calls have different words.
CallKey key_of(const ir::OpDef& op, const seam::Device& device, std::span<const Tensor* const> inputs,
               std::span<const AttrValue> attrs) {
  size_t most = 2 + inputs.size() * (1 + kMaxRank);
  for (const auto& a : attrs) most += attr_words(a);
  CallKey key;
  CallKey::Writer words(key, most);
  words.add(reinterpret_cast<uint64_t>(&op));
  static_assert(sizeof(Policy) == sizeof(uint32_t));  // each of its fields, no padding
  static_assert(seam::kMaxDevices <= 1 << 8);
  words.add(std::bit_cast<uint32_t>(policy) | uint64_t{device.index()} << 32 |
            uint64_t{seam::default_list} << 40 | uint64_t{inputs.size()} << 48);
  for (const auto& a : attrs) words = with_attr(words, a);
  for (const Tensor* t : inputs) {
    if (!t || !*t) {
      words.add(~uint64_t{0});
      continue;
    }
    const TensorImpl& impl = *t->impl();
    if (impl.traced) [[unlikely]]
      throw_foreign(op);
    words.add(impl.signature);
    for (int i = 0; i < impl.rank; ++i) words.add(static_cast<uint64_t>(impl.dims[i]));
  }
  words.finish(key);
  return key;
}

seam::Device& pick_device(std::span<const Tensor* const> inputs) {
  for (const Tensor* t : inputs)
    if (t && *t && t->impl()->buffer) return device_of(*t->impl());
  return default_device();
}

// For the few kernels that need a workspace, and for ordered queues.
[[gnu::noinline]] Status launch_in_turn(seam::PreparedKernel& plan, seam::Device& device,
                                        const weft_tensor* const* in, const weft_tensor* const* out,
                                        std::span<const Tensor* const> inputs) {
  Tensor scratch;
  if (const uint64_t workspace = plan.plan.workspace) {
    const int64_t size[] = {static_cast<int64_t>(workspace)};
    scratch = make_tensor(device, DType::u8, size);
  }
  std::unique_lock lock(device.eager_mutex(), std::defer_lock);
  if (device.ordered()) lock.lock();
  for (const Tensor* t : inputs)  // results are fresh, or overwritten inputs
    if (t && *t) WEFT_CHECK(device.order(device.eager_queue(), *t->impl()->buffer.get()));
  return seam::launch(plan, device.eager_queue(), in, out, scratch ? &scratch.impl()->c : nullptr);
}

void run_kernel(CachedCall& call, seam::Device& device, std::span<const Tensor* const> inputs,
                std::span<Tensor> outputs) {
  const weft_tensor* in[ir::kMostOperands];
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
      if (!buffer.ok()) throw_no_room(call, o, buffer.take_status());
      outputs[k] = Tensor(make_impl(o.dtype, o.shape, std::move(buffer).value(), &device));
    }
    out[k] = &outputs[k].impl()->c;
  }
  const Status status = call.plan->plan.workspace || device.ordered()
                            ? launch_in_turn(*call.plan, device, in, out, inputs)
                            : seam::launch(*call.plan, device.eager_queue(), in, out, nullptr);
  if (!status.ok()) throw Error(status);
}

// Values do not change: memory that another view reads is not overwritten.
void check_updates(const ir::OpDef& op, std::span<const Tensor* const> inputs) {
  for (const auto& u : op.updates) {
    if (u.input < 0) continue;
    const Tensor& t = *inputs[static_cast<size_t>(u.input)];
    if (t && (t.impl()->buffer->viewed.load(std::memory_order_relaxed) ||
              t.impl()->buffer->holders.load(std::memory_order_relaxed)))
      throw Error(invalid(
          "{}: '{}' can't be updated in place: a reshape of it, or a compiled program (take_captured) "
          "uses its memory, or it is memory that may only be read; update a copy",
          op.name, op.inputs[static_cast<size_t>(u.input)]));
  }
}

void bump_versions(const ir::OpDef& op, std::span<const Tensor* const> inputs) {
  for (const auto& u : op.updates)
    if (u.input >= 0) {
      auto& version = inputs[static_cast<size_t>(u.input)]->impl()->buffer->version;
      version.store(version.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
}

void execute(const ir::OpDef& op, std::span<const Tensor* const> inputs, std::span<const AttrValue> attrs,
             std::span<Tensor> outputs);

// Copies operands whose layout no kernel accepts.
void execute_regular(const ir::OpDef& op, std::span<const Tensor* const> inputs,
                     std::span<const AttrValue> attrs, std::span<Tensor> outputs) {
  std::vector<Tensor> copies(inputs.size());
  std::vector<const Tensor*> regular(inputs.begin(), inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] && *inputs[i] && inputs[i]->impl()->irregular)
      copies[i] = regular_copy(*inputs[i]), regular[i] = &copies[i];
  execute(op, regular, attrs, outputs);
}

void execute(const ir::OpDef& op, std::span<const Tensor* const> inputs, std::span<const AttrValue> attrs,
             std::span<Tensor> outputs) {
  const bool updates = op.updates[0].output >= 0;
  if (updates) check_updates(op, inputs);
  seam::Device& device = pick_device(inputs);
  CallKey key = key_of(op, device, inputs, attrs);
  CachedCall* call = cache().find(key);
  if (!call) {
    CachedCall fresh = value_or_raise(resolve(op, device, inputs, attrs, policy));
    fresh.key = std::move(key);
    call = &cache().insert(std::move(fresh));
  }
  switch (call->kind) {
    case CachedCall::Kind::kernel: run_kernel(*call, device, inputs, outputs); break;
    case CachedCall::Kind::decompose: run_decomposition(op, device, inputs, attrs, outputs); break;
    case CachedCall::Kind::elsewhere:
      run_elsewhere(op, device, *call->elsewhere, inputs, attrs, outputs);
      break;
    case CachedCall::Kind::regular: return execute_regular(op, inputs, attrs, outputs);
    case CachedCall::Kind::empty: break;
  }
  if (updates) bump_versions(op, inputs);
}

// A reshape of an intermediate result. Leaves and states, which optimizers overwrite, are copied instead.
bool is_view(const ir::OpDef& op, const Tensor& x) {
  static const ir::OpDef* const reshape = ir::find_op("reshape");
  return &op == reshape && x.impl()->extra && x.impl()->extra->node;
}
Tensor view_of(const ir::OpDef& op, const Tensor& x, std::span<const AttrValue> attrs) {
  const TensorType type = x.type(), *const types[] = {&type};
  const auto shape = value_or_raise(op.infer(ir::Types(types), attrs))[0].shape;
  x.impl()->buffer->viewed.store(true, std::memory_order_relaxed);
  return viewed(x, shape);
}

}  // namespace

static void apply_here(const ir::OpDef& op, std::span<const Tensor* const> inputs,
                       std::span<const AttrValue> attrs, std::span<Tensor> outputs) {
  const bool taped = grad_on && wants_record(inputs);
  if (innermost_log) [[unlikely]]
    innermost_log->note(op, inputs);
  if (active_trace()) [[unlikely]] {
    record_node(op, inputs, attrs, outputs);
  } else if (taped && is_view(op, *inputs[0])) {
    outputs[0] = view_of(op, *inputs[0], attrs);
  } else {
    execute(op, inputs, attrs, outputs);
  }
  if (taped) raise_if(record(op, inputs, attrs, outputs));
}

void apply(const ir::OpDef& op, std::span<const Tensor* const> inputs, std::span<const AttrValue> attrs,
           std::span<Tensor> outputs) {
  try {
    apply_here(op, inputs, attrs, outputs);
  } catch (const Error& e) {
    throw Error(in_scope(e.status()));
  }
}

bool wants_record(std::span<const Tensor* const> inputs) {
  for (const Tensor* t : inputs)
    if (t && *t && t->impl()->requires_grad) return true;
  return false;
}

CacheStats cache_stats() { return {cache().misses(), cache().entries()}; }
void clear_call_cache() { cache().clear(); }
bool grad_enabled() { return grad_on; }
void set_grad_enabled(bool on) { grad_on = on; }
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
void set_policy(const Policy& p) { eager::policy = p; }

}  // namespace weft
