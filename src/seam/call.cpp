#include "seam/call.h"

#include "seam/flatten.h"

namespace weft::seam {

std::string text(const ConcreteType& type) {
  return name(type.dtype) + weft::text(std::span<const int64_t>(type.shape));
}

std::string text(const CallDesc& call) {
  std::string s;
  for (const auto& in : call.inputs) s += (s.empty() ? "" : ", ") + (in ? text(*in) : std::string("_"));
  for (const auto& attr : call.attrs)
    if (std::find(call.off_default.begin(), call.off_default.end(), attr.name) != call.off_default.end())
      s += (s.empty() ? "" : ", ") + attr.name + "=" + weft::text(attr.value);
  return fmt::format("{} ({})", call.op, s);
}

// The vectors that others point into are reserved to their final size first, so nothing moves.
struct OwnedCall::Views {
  std::vector<weft_type> types;
  std::vector<weft_attr> attrs;
  std::vector<IntList> ints;
  std::vector<const weft_type*> inputs, outputs;
  std::vector<const weft_attr*> attr_list;
  std::vector<uint32_t> update_inputs;
  std::vector<std::vector<const char*>> packings;  // of each constant

  RegionDesc flat;  // of a body that nests
  weft_region region{};
  std::vector<const weft_type*> values;
  std::vector<std::unique_ptr<OwnedCall>> step_calls;
  std::vector<weft_step> steps;
  std::vector<const weft_step*> step_list;

  const weft_type* type(const ConcreteType& t);
  weft_type& input(size_t i) {  // those of the inputs come first
    return *std::ranges::find(types, inputs[i], [](auto& t) { return &t; });
  }
  void mark(const Constant& constant);
  const weft_attr* attr(const Attr& a);
  void fill_region(const RegionDesc& r);
};

const weft_type* OwnedCall::Views::type(const ConcreteType& t) {
  const auto& i = info(t.dtype);
  const DLDataType dtype{i.dlpack_code, static_cast<uint8_t>(8 * i.bytes), 1};
  types.push_back({.size = sizeof(weft_type),
                   .dtype = dtype,
                   .rank = static_cast<int32_t>(t.shape.size()),
                   .layout = 0,
                   .min = t.shape.data(),
                   .max = t.shape.data(),
                   .strides = nullptr,
                   .alignment = byte_size(t.dtype),
                   .constant = 0,
                   .n_packings = 0,
                   .packings = nullptr});
  return &types.back();
}

void OwnedCall::Views::mark(const Constant& constant) {
  auto& ids = packings.emplace_back();
  for (const auto& id : constant.packings) ids.push_back(id.c_str());
  weft_type& type = input(constant.input);
  type.constant = constant.one_size ? 2 : 1;
  type.n_packings = static_cast<uint32_t>(ids.size()), type.packings = ids.data();
}

const weft_attr* OwnedCall::Views::attr(const Attr& a) {
  weft_attr out{
      .size = sizeof(weft_attr), .kind = static_cast<uint32_t>(a.value.index()), .name = a.name.c_str()};
  if (const auto* i = std::get_if<int64_t>(&a.value)) out.i = *i;
  if (const auto* f = std::get_if<double>(&a.value)) out.f = *f;
  if (const auto* dims = std::get_if<Shape>(&a.value)) {
    auto& list = ints.emplace_back();
    for (const Dim d : *dims) list.push_back(d.min());
    out.ints = list.data(), out.n = list.size();
  }
  if (const auto* s = std::get_if<std::string>(&a.value)) out.bytes = s->c_str(), out.n = s->size();
  if (const auto* b = std::get_if<Bytes>(&a.value)) out.bytes = b->data.c_str(), out.n = b->data.size();
  attrs.push_back(out);
  return &attrs.back();
}

void OwnedCall::Views::fill_region(const RegionDesc& r) {
  for (const auto& v : r.values) values.push_back(type(v));
  steps.reserve(r.steps.size());
  for (const auto& s : r.steps) {
    step_calls.push_back(std::make_unique<OwnedCall>(s.call));
    steps.push_back({.size = sizeof(weft_step),
                     .reserved = 0,
                     .call = step_calls.back()->c(),
                     .inputs = s.inputs.data(),
                     .outputs = s.outputs.data()});
    step_list.push_back(&steps.back());
  }
  region = {.size = sizeof(weft_region),
            .n_values = static_cast<uint32_t>(values.size()),
            .values = values.data(),
            .n_inputs = r.n_inputs,
            .n_steps = static_cast<uint32_t>(step_list.size()),
            .steps = step_list.data(),
            .outputs = r.outputs.data()};
}

OwnedCall::OwnedCall(CallDesc desc) : desc_(std::move(desc)), views_(std::make_unique<Views>()) {
  auto& v = *views_;
  const RegionDesc* body = desc_.region.get();
  if (body && nests(*body)) v.flat = flatten(*body), body = &v.flat;
  v.types.reserve(desc_.inputs.size() + desc_.outputs.size() + (body ? body->values.size() : 0));
  v.attrs.reserve(desc_.attrs.size()), v.ints.reserve(desc_.attrs.size());
  v.inputs.reserve(desc_.inputs.size()), v.outputs.reserve(desc_.outputs.size());
  for (const auto& t : desc_.inputs) v.inputs.push_back(t ? v.type(*t) : nullptr);
  for (size_t i = 0; i < desc_.layouts.size(); ++i)
    if (const auto& layout = desc_.layouts[i]) {
      weft_type& type = v.input(i);
      type.strides = layout->strides.data(), type.alignment = layout->alignment;
    }
  for (const auto& constant : desc_.constants) v.mark(constant);
  for (const auto& t : desc_.outputs) v.outputs.push_back(v.type(t));
  for (const auto& a : desc_.attrs) v.attr_list.push_back(v.attr(a));
  v.update_inputs.assign(desc_.outputs.size(), UINT32_MAX);
  uint64_t updates = 0;
  for (const auto& [output, input] : desc_.updates)
    v.update_inputs[output] = input, updates |= uint64_t{1} << output;
  if (body) v.fill_region(*body);
  view_ = {.size = sizeof(weft_call),
           .op_version = desc_.version,
           .op = desc_.op.c_str(),
           .n_inputs = static_cast<uint32_t>(v.inputs.size()),
           .n_outputs = static_cast<uint32_t>(v.outputs.size()),
           .n_attrs = static_cast<uint32_t>(v.attr_list.size()),
           .determinism = desc_.determinism,
           .inputs = v.inputs.data(),
           .outputs = v.outputs.data(),
           .attrs = v.attr_list.data(),
           .precision = desc_.precision,
           .reserved = 0,
           .accumulate = desc_.accumulate,
           .updates = updates,
           .update_inputs = v.update_inputs.data(),
           .region = desc_.region ? &v.region : nullptr};
}

OwnedCall::~OwnedCall() = default;

}  // namespace weft::seam
