#include "eager/describe.h"

#include "base/identical.h"
#include "ir/graph.h"
#include "ir/lower.h"

namespace weft::eager {
namespace {

Result<seam::ConcreteType> concrete(const TensorType& t) {
  seam::ConcreteType out{t.dtype, {}};
  for (const Dim d : t.shape) {
    if (!d.is_const()) return invalid("dimension {} of {} has no value yet", d.text(), text(t));
    out.shape.push_back(d.value());
  }
  uint64_t bytes = byte_size(t.dtype);
  for (const int64_t d : out.shape)
    if (d > 0 && __builtin_mul_overflow(bytes, static_cast<uint64_t>(d), &bytes))
      return fail(Code::out_of_memory, "{} has more bytes than 64 bits count", text(t));
  return out;
}

void add_attrs(seam::CallDesc& call, const ir::OpDef& op, std::span<const AttrValue> attrs) {
  const auto defaults = op.defaults();
  for (size_t i = 0; i < attrs.size(); ++i) {
    call.attrs.push_back({op.attrs[i].name, attrs[i]});
    if (!identical(attrs[i], defaults[i])) call.off_default.push_back(op.attrs[i].name);
  }
  std::sort(call.attrs.begin(), call.attrs.end(),
            [](const Attr& a, const Attr& b) { return a.name < b.name; });
}

Result<std::shared_ptr<const seam::RegionDesc>> describe_body(const ir::Graph& body) {
  auto region = std::make_shared<seam::RegionDesc>();
  // A body numbers its inputs first and each step's results in order, just as a graph of one decomposition
  // does.
  for (const auto& t : body.types) {
    WEFT_TRY(auto c, concrete(t));
    region->values.push_back(std::move(c));
  }
  region->n_inputs = static_cast<uint32_t>(body.inputs.size());
  for (const auto& node : body.nodes) {
    std::vector<const TensorType*> in;
    std::vector<TensorType> out;
    for (const int32_t id : node.inputs)
      in.push_back(id < 0 ? nullptr : &body.types[static_cast<size_t>(id)]);
    for (const int32_t id : node.outputs) out.push_back(body.types[static_cast<size_t>(id)]);
    WEFT_TRY(auto call, describe(*node.op, in, out, node.attrs));
    seam::StepDesc step{std::move(call), {}, {}};
    for (const int32_t id : node.inputs) step.inputs.push_back(static_cast<uint32_t>(id));
    for (const int32_t id : node.outputs) step.outputs.push_back(static_cast<uint32_t>(id));
    region->steps.push_back(std::move(step));
  }
  for (const auto& o : body.outputs) region->outputs.push_back(static_cast<uint32_t>(o.value));
  return std::shared_ptr<const seam::RegionDesc>(std::move(region));
}

}  // namespace

Result<seam::CallDesc> describe(const ir::OpDef& op, std::span<const TensorType* const> inputs,
                                std::span<const TensorType> outputs, std::span<const AttrValue> attrs) {
  seam::CallDesc call;
  call.op = op.name, call.version = op.version;
  for (const auto* t : inputs) {
    if (!t) {
      call.inputs.push_back(std::nullopt);
      continue;
    }
    WEFT_TRY(auto c, concrete(*t));
    call.inputs.push_back(std::move(c));
  }
  call.inputs.resize(op.listed(inputs.size()));
  for (const auto& t : outputs) {
    auto c = concrete(t);
    if (!c.ok()) return c.take_status().at(op.name);
    call.outputs.push_back(std::move(c).value());
  }
  add_attrs(call, op, attrs);
  for (const auto& u : op.updates)
    if (u.output >= 0) call.updates.emplace_back(u.output, u.input);
  if (op.primitive()) return call;
  WEFT_TRY(const auto body, ir::lower_to_primitives(op, inputs, attrs));
  WEFT_TRY(call.region, describe_body(body));
  return call;
}

}  // namespace weft::eager
