#include "link/resolve_types.h"

namespace weft::link {

Result<seam::ConcreteType> concrete(const program::TensorSpec& spec, const Bindings& bindings) {
  WEFT_TRY(auto shape, evaluate(std::span<const Dim>(spec.type.shape), bindings));
  for (const int64_t d : shape)
    if (d < 0) return invalid("{} has a negative dimension for these sizes", text(spec.type));
  return seam::ConcreteType{spec.type.dtype, std::move(shape)};
}

static Result<AttrValue> settle(const AttrValue& value, const Bindings& bindings) {
  const auto* dims = std::get_if<Shape>(&value);
  if (!dims) return value;
  WEFT_TRY(const auto numbers, evaluate(std::span<const Dim>(*dims), bindings));
  return AttrValue(to_shape(numbers));
}

Result<seam::CallDesc> describe(const program::KernelCall& call,
                                const std::vector<seam::ConcreteType>& values, const Bindings& bindings) {
  seam::CallDesc out;
  out.op = call.op, out.version = call.version;
  for (const auto id : call.inputs)
    out.inputs.push_back(id < 0 ? std::nullopt : std::optional(values[static_cast<size_t>(id)]));
  for (const auto id : call.outputs)
    out.outputs.push_back(id < 0 ? seam::ConcreteType{} : values[static_cast<size_t>(id)]);
  for (const auto& a : call.attrs) {
    WEFT_TRY(auto value, settle(a.value, bindings));
    out.attrs.push_back({a.name, std::move(value)});
    if (!std::binary_search(call.defaults.begin(), call.defaults.end(), a.name))
      out.off_default.push_back(a.name);
  }
  for (const auto& u : call.updates) out.updates.emplace_back(u.output, u.input);
  return out;
}

// Bodies nest as deep as program::verify lets them.
Result<Bodies::Body> Bodies::of(int32_t region) {
  if (region < 0) return Body();
  const auto at = static_cast<size_t>(region);
  if (!known_[at]) {
    WEFT_TRY(known_[at], described(program_.regions[at]));
  }
  return known_[at];
}

Result<Bodies::Body> Bodies::described(const program::Region& region) {
  auto out = std::make_shared<seam::RegionDesc>();
  for (const auto& v : region.values) {
    WEFT_TRY(auto type, concrete(v, bindings_));
    out->values.push_back(std::move(type));
  }
  out->n_inputs = region.n_inputs;
  for (const auto& call : region.calls) {
    WEFT_TRY(auto desc, describe(call, out->values, bindings_));
    WEFT_TRY(desc.region, of(call.region));
    seam::StepDesc step{std::move(desc), {}, {}};
    for (const auto id : call.inputs) step.inputs.push_back(static_cast<uint32_t>(id));
    for (const auto id : call.outputs) step.outputs.push_back(static_cast<uint32_t>(id));
    out->steps.push_back(std::move(step));
  }
  for (const auto id : region.outputs) out->outputs.push_back(static_cast<uint32_t>(id));
  return Body(std::move(out));
}

}  // namespace weft::link
