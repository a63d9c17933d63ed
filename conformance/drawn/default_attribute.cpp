#include "conformance/drawn/default_attribute.h"

#include "eager/describe.h"
#include "weft/backend/views.hpp"

namespace weft::conformance {
namespace {

std::optional<TensorType> type_of(const weft_type* type) {
  if (!type) return std::nullopt;
  const backend::TypeView t(type);
  return TensorType{t.dtype(), to_shape(t.max())};
}

AttrValue value_of(const weft_attr& a) {
  switch (a.kind) {
    case WEFT_ATTR_INT: return a.i;
    case WEFT_ATTR_FLOAT: return a.f;
    case WEFT_ATTR_INTS: return to_shape(std::span(a.ints, a.n));
    case WEFT_ATTR_STRING: return std::string(a.bytes, a.n);
    default: return Bytes{std::string(a.bytes, a.n)};
  }
}

}  // namespace

seam::CallPtr with_default_attribute(const weft_call& call, uint64_t which) {
  const ir::OpDef* op = ir::find_op(call.op);
  if (!op || op->attrs.empty()) return nullptr;
  std::vector<std::optional<TensorType>> types;
  std::vector<const TensorType*> in;
  for (uint32_t i = 0; i < call.n_inputs; ++i) types.push_back(type_of(call.inputs[i]));
  for (const auto& t : types) in.push_back(t ? &*t : nullptr);
  auto attrs = op->defaults();
  for (size_t i = 0; i < attrs.size(); ++i)
    for (uint32_t k = 0; k < call.n_attrs && i != which % attrs.size(); ++k)
      if (std::string_view(call.attrs[k]->name) == op->attrs[i].name) attrs[i] = value_of(*call.attrs[k]);
  const auto out = op->infer(ir::Types(in), attrs);
  if (!out.ok() || out.value().size() != call.n_outputs) return nullptr;
  for (uint32_t k = 0; k < call.n_outputs; ++k)
    if (out.value()[k] != type_of(call.outputs[k])) return nullptr;
  ir::settle_attrs(*op, ir::Types(in), attrs);
  auto desc = eager::describe(*op, in, out.value(), attrs);
  if (!desc.ok()) return nullptr;
  desc.value().accumulate = call.accumulate;
  return std::make_shared<const seam::OwnedCall>(std::move(desc).value());
}

}  // namespace weft::conformance
