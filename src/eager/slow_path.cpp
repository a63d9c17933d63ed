#include "eager/slow_path.h"

#include "base/log.h"
#include "eager/called_from.h"
#include "eager/describe.h"
#include "eager/tape.h"
#include "eager/tensor_builder.h"
#include "eager/trace_state.h"
#include "seam/choice.h"
#include "seam/registry.h"

namespace weft::eager {
namespace {

struct OperandTypes {
  explicit OperandTypes(Inputs inputs) {
    types.reserve(inputs.size());
    for (const Tensor* t : inputs) {
      types.push_back(t && *t ? t->type() : TensorType{});
      pointers.push_back(t && *t ? &types.back() : nullptr);
    }
  }
  std::vector<TensorType> types;
  std::vector<const TensorType*> pointers;
};

Status one_device(const ir::OpDef& op, Inputs inputs, const seam::Device& device) {
  for (const Tensor* t : inputs)
    if (t && *t && !device_of(*t->impl()).shares_memory(device))
      return invalid("{}: operands are on {} and {}; move one with .to(...)", op.name, device.name(),
                     device_of(*t->impl()).name());
  return {};
}

// For irregular operands. An overwritten one can't be copied, and few kernels write strided.
Result<std::vector<std::optional<seam::Layout>>> layouts_of(const ir::OpDef& op, Inputs inputs) {
  std::vector<std::optional<seam::Layout>> layouts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i] || !*inputs[i] || !inputs[i]->impl()->irregular) continue;
    const TensorImpl& t = *inputs[i]->impl();
    for (const auto& u : op.updates)
      if (u.output >= 0 && u.input == static_cast<int>(i))
        return invalid("{}: '{}' is written in place, and was imported with strides {}; copy it first",
                       op.name, op.inputs[i], text(std::span<const int64_t>(t.extra->strides)));
    layouts.resize(inputs.size());
    layouts[i] = {t.extra->strides, byte_size(t.dtype)};
  }
  return layouts;
}

}  // namespace

Result<CachedCall> resolve(const ir::OpDef& op, seam::Device& device, Inputs inputs,
                           std::span<const AttrValue> attrs, const Policy& policy) {
  WEFT_CHECK(one_device(op, inputs, device));
  const OperandTypes types(inputs);
  if (inputs.size() + op.n_optional < op.n_inputs)
    return invalid("{}: wants {} operands", op.name, op.n_inputs);
  for (size_t i = 0; i + op.n_optional < op.n_inputs; ++i)
    if (!types.pointers[i]) return invalid("{}: operand '{}' is an empty tensor", op.name, op.inputs[i]);
  WEFT_TRY(const auto inferred, op.infer(ir::Types(types.pointers), attrs));
  for (const auto& t : inferred)
    if (t.rank() > kMaxRank)
      return invalid("{}: rank {} is above the limit of {}", op.name, t.rank(), kMaxRank);
  std::vector<AttrValue> settled(attrs.begin(), attrs.end());
  ir::settle_attrs(op, ir::Types(types.pointers), settled);
  WEFT_TRY(auto desc, describe(op, types.pointers, inferred, settled));
  desc.determinism = policy.determinism, desc.precision = policy.precision;

  CachedCall call;
  for (size_t k = 0; k < inferred.size(); ++k) {
    const auto& t = desc.outputs[k];
    call.outputs.push_back(
        {t.dtype, static_cast<int8_t>(op.update_input(static_cast<int>(k))), t.shape, t.bytes()});
  }
  WEFT_TRY(desc.layouts, layouts_of(op, inputs));
  const bool irregular = !desc.layouts.empty();
  const auto owned = std::make_shared<const seam::OwnedCall>(std::move(desc));
  std::vector<seam::Refusal> refusals;
  WEFT_TRY(call.plan, seam::select(device, owned, &refusals));
  if (call.plan || irregular) {
    call.kind = call.plan ? CachedCall::Kind::kernel : CachedCall::Kind::regular;
    return call;
  }
  if (!op.primitive() && policy.decompose) {
    call.kind = CachedCall::Kind::decompose;
    return call;
  }
  if (policy.fallback != Fallback::forbid) {
    const auto others = seam::registry().fallbacks(device, seam::default_names());
    for (seam::Device* other : others) {
      WEFT_TRY(auto plan, seam::select(*other, owned, &refusals));
      if (!plan) continue;
      const bool shares = other->shares_memory(device);
      if (policy.fallback == Fallback::warn)
        warn("{} runs on {} instead of {}{}", op.name, other->name(), device.name(),
             shares ? "" : "; its operands are copied each time");
      if (shares) {  // another provider's kernel, on the memory and queue of this device
        call.kind = CachedCall::Kind::kernel, call.plan = std::move(plan);
        return call;
      }
      call.kind = CachedCall::Kind::elsewhere, call.elsewhere = other;
      return call;
    }
  }
  return seam::refused(device, owned->desc(), refusals, policy, {});
}

void run_decomposition(const ir::OpDef& op, seam::Device& device, Inputs inputs,
                       std::span<const AttrValue> attrs, std::span<Tensor> outputs) {
  const GradMode off(false);  // the tape has the op as a whole
  TensorBuilder b;
  b.device = &device;
  ir::ValueList in;
  for (const Tensor* t : inputs) in.push_back(t ? b.wrap(*t) : ir::Value());
  in.resize(op.listed(in.size()));
  const auto out = ir::expand(b, op, in, attrs);
  raise_if(b.status());
  for (size_t k = 0; k < outputs.size(); ++k) {
    outputs[k] = b.tensor(out[k]);
    const int updated = op.update_input(static_cast<int>(k));
    if (updated < 0) {
      // A new tensor, if the decomposition returns the operand itself.
      for (const Tensor* t : inputs)
        if (t && *t && t->impl()->buffer.get() == outputs[k].impl()->buffer.get())
          outputs[k] = copy_of(outputs[k]);
      continue;
    }
    const Tensor& target = *inputs[static_cast<size_t>(updated)];
    const auto &to = *target.impl(), &from = *outputs[k].impl();
    if (to.buffer.get() != from.buffer.get()) {
      std::lock_guard lock(device.eager_mutex());
      raise_if(device.eager_queue().copy(*to.buffer.get(), to.c.dl.byte_offset, *from.buffer.get(),
                                         from.c.dl.byte_offset, to.bytes()));
    }
    outputs[k] = target;
  }
}

void run_elsewhere(const ir::OpDef& op, seam::Device& device, seam::Device& elsewhere, Inputs inputs,
                   std::span<const AttrValue> attrs, std::span<Tensor> outputs) {
  const GradMode off(false);
  std::vector<Tensor> moved(inputs.size());
  std::vector<const Tensor*> pointers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] && *inputs[i]) moved[i] = value_or_raise(copy_to(*inputs[i], elsewhere));
    pointers.push_back(&moved[i]);
  }
  {
    const OnDevice there(elsewhere);  // for ops without operands
    apply(op, pointers, attrs, outputs);
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    outputs[k] = value_or_raise(copy_to(outputs[k], device));
    const int updated = op.update_input(static_cast<int>(k));
    if (updated < 0) continue;
    const Tensor& target = *inputs[static_cast<size_t>(updated)];
    {
      std::lock_guard lock(device.eager_mutex());
      raise_if(device.eager_queue().copy(*target.impl()->buffer.get(), 0, *outputs[k].impl()->buffer.get(), 0,
                                         target.impl()->bytes()));
    }
    outputs[k] = target;
  }
}

void record_node(const ir::OpDef& op, Inputs inputs, std::span<const AttrValue> attrs,
                 std::span<Tensor> outputs) {
  TraceState& trace = *active_trace();
  ir::ValueList in;
  for (const Tensor* t : inputs) in.push_back(t && *t ? value_or_raise(trace.value_of(*t)) : ir::Value());
  const CalledFrom from = called_from();
  trace.graph.from = from ? *from : std::string();
  const auto out = trace.graph.call(op, in, {attrs.begin(), attrs.end()});
  trace.graph.from.clear();
  raise_if(trace.graph.status());
  for (size_t k = 0; k < outputs.size(); ++k) {
    const int updated = op.update_input(static_cast<int>(k));
    if (updated >= 0) {
      const Tensor& target = *inputs[static_cast<size_t>(updated)];
      trace.rebind(target, out[k]);
      outputs[k] = target;
    } else {
      outputs[k] = trace.wrap(out[k]);
    }
  }
}

ir::ValueList TensorBuilder::emit(const ir::OpDef& op, ir::Values inputs, std::vector<AttrValue> attrs,
                                  std::vector<TensorType> types) {
  std::vector<Tensor> in, out(types.size());
  std::vector<const Tensor*> pointers;
  in.reserve(inputs.size());
  for (const ir::Value v : inputs) {
    in.push_back(tensor(v));
    pointers.push_back(&in.back());
  }
  ir::ValueList values;
  try {
    // Intermediates of decompositions and gradients are never updated in place, so a reshape can be a view.
    static const ir::OpDef* const reshape = ir::find_op("reshape");
    if (&op == reshape && !active_trace() && !(grad_enabled() && wants_record(pointers))) {
      out[0] = viewed(in[0], types[0].shape);
    } else if (inputs.empty() && device) {
      const OnDevice here(*device);
      apply(op, pointers, attrs, out);
    } else {
      apply(op, pointers, attrs, out);
    }
    for (const auto& t : out) values.push_back(wrap(t));
  } catch (const Error& e) {  // op files never see an exception: the builder keeps the first failure
    fail(e.status());
    for (const auto& t : types) values.push_back(placeholder(t));
  }
  return values;
}

ir::Value TensorBuilder::placeholder(const TensorType& type) {
  tensors_.emplace_back();
  types_.push_back(type);
  return {this, static_cast<int32_t>(tensors_.size()) - 1};
}

}  // namespace weft::eager
