#include "conformance/seam/rig.h"

#include "conformance/seam/describe.h"

#include <cstring>
#include <deque>

namespace weft::conformance {
namespace {

/// Fills it with copies of its first n bytes.
void repeat(std::vector<std::byte>& bytes, size_t n) {
  while (n < bytes.size()) {
    const size_t more = std::min(n, bytes.size() - n);
    std::memcpy(&bytes[n], bytes.data(), more);
    n += more;
  }
}

/// The contents of an output before a launch: for NaN in a dtype without it, all bits set.
HostTensor holding(const seam::ConcreteType& type, std::vector<double> values) {
  const std::vector<double> meant = values;
  for (double& v : values) v = v == v ? v : 0;
  HostTensor t = array(type.shape, values, type.dtype);
  const size_t one = byte_size(type.dtype), own = std::min(meant.size(), t.bytes.size() / one);
  for (size_t i = 0; i < own; ++i)
    if (meant[i] != meant[i]) std::memset(&t.bytes[i * one], 0xff, one);
  repeat(t.bytes, own * one);
  return t;
}

}  // namespace

HostTensor array(IntList shape, const std::vector<double>& values, DType dtype) {
  HostTensor t{{dtype, std::move(shape)}, {}};
  t.bytes.resize(t.type.bytes());
  const size_t one = byte_size(dtype), own = std::min(values.size(), t.bytes.size() / one);
  for (size_t i = 0; i < own; ++i) store_element(dtype, t.bytes.data(), i, values[i]);
  repeat(t.bytes, own * one);
  return t;
}
HostTensor counting(IntList shape, double first, DType dtype) {
  std::vector<double> v(static_cast<size_t>(element_count(std::span<const int64_t>(shape))));
  for (size_t i = 0; i < v.size(); ++i) v[i] = first + static_cast<double>(i % 11);
  return array(std::move(shape), v.empty() ? std::vector<double>{0} : v, dtype);
}
std::vector<double> numbers(const HostTensor& t) {
  std::vector<double> out(t.bytes.size() / byte_size(t.type.dtype));
  for (size_t i = 0; i < out.size(); ++i) out[i] = load_element<double>(t.type.dtype, t.bytes.data(), i);
  return out;
}

Result<seam::CallPtr> describe(const Ask& ask) {
  const ir::OpDef* op = ir::find_op(ask.op);
  return op ? describe(*op, ask) : Result<seam::CallPtr>(invalid("no op named {}", ask.op));
}

Result<seam::CallPtr> describe(const ir::OpDef& op, const Ask& ask) {
  std::deque<TensorType> types;
  std::vector<const TensorType*> in;
  for (const auto& t : ask.inputs) {
    const std::span<const int64_t> dims(t.type.shape);
    in.push_back(&types.emplace_back(TensorType{t.type.dtype, to_shape(dims)}));
  }
  in.resize(op.n_inputs);  // the rest is absent
  for (size_t i = 0; i < in.size(); ++i)
    if (ask.absent >> i & 1) in[i] = nullptr;
  WEFT_TRY(auto attrs, ir::order_attrs(op, ask.attrs));
  WEFT_TRY(const auto out, op.infer(ir::Types(in), attrs));
  ir::settle_attrs(op, ir::Types(in), attrs);
  WEFT_TRY(auto desc, eager::describe(op, in, out, attrs));
  desc.accumulate = ask.accumulate, desc.determinism = ask.determinism;
  for (uint32_t i = 0; i < desc.inputs.size(); ++i)
    if (desc.inputs[i] && ask.constants >> i & 1) desc.constants.push_back({i, {}, ask.one_size});
  return seam::CallPtr(std::make_shared<const seam::OwnedCall>(std::move(desc)));
}

Rig::Rig(const std::string& backend) : Rig(*value_or_raise(seam::registry().open(backend))) {}
Rig::Rig(seam::Device& d) : device(d), queue(value_or_raise(d.open_queue())) {}

Result<std::unique_ptr<Rig::Operand>> Rig::upload(const HostTensor& t, uint64_t offset) {
  const auto around = static_cast<int64_t>((2 * offset + t.bytes.size()) / 8 + 1);
  std::vector<std::byte> all = offset ? array({around}, {-77}, DType::f64).bytes : t.bytes;
  if (offset) std::ranges::copy(t.bytes, all.begin() + static_cast<std::ptrdiff_t>(offset));
  WEFT_TRY(auto o, room(t.type, all.size(), offset));
  WEFT_CHECK(queue->copy_in(*o->buffer.get(), 0, all.data(), all.size()));
  return o;
}

Result<std::unique_ptr<Rig::Operand>> Rig::room(const seam::ConcreteType& type, uint64_t bytes,
                                                uint64_t offset) {
  auto o = std::make_unique<Operand>();
  o->type = type;
  WEFT_TRY(o->buffer, device.allocate_unpooled(bytes));
  const auto& i = info(type.dtype);
  o->c = {.dl = {.data = o->buffer->handle,
                 .device = device.dl(),
                 .ndim = static_cast<int32_t>(o->type.shape.size()),
                 .dtype = {i.dlpack_code, static_cast<uint8_t>(8 * i.bytes), 1},
                 .shape = o->type.shape.data(),
                 .strides = nullptr,
                 .byte_offset = offset},
          .size = sizeof(weft_tensor),
          .layout = 0,
          .logical_shape = nullptr,
          .alignment = 64};
  return o;
}

Result<HostTensor> Rig::download(const Operand& o) {
  HostTensor t{o.type, std::vector<std::byte>(o.type.bytes())};
  WEFT_CHECK(queue->copy_out(t.bytes.data(), *o.buffer.get(), o.c.dl.byte_offset, t.bytes.size()));
  return t;
}

Result<std::unique_ptr<Rig::Operand>> Rig::workspace(const weft_plan& plan, uint64_t offset) {
  if (plan.workspace == 0) return std::unique_ptr<Operand>();
  if (fresh)
    return room({DType::u8, {static_cast<int64_t>(plan.workspace)}}, plan.workspace + offset, offset);
  return upload(array({static_cast<int64_t>(plan.workspace)}, {255}, DType::u8), offset);
}

Result<seam::PreparedPtr> Rig::plan(const seam::CallPtr& call) {
  std::vector<seam::Refusal> refusals;
  WEFT_TRY(auto plan, seam::select(device, call, &refusals));
  if (!plan) return seam::refused(device, call->desc(), refusals, {}, {});
  return plan;
}

Result<Rig::Placed> Rig::place(const seam::PreparedKernel& plan, const Ask& ask, uint64_t offset) {
  const auto& call = plan.call->desc();
  Placed p;
  for (const auto& t : ask.inputs) {
    WEFT_TRY(auto o, upload(t, offset));
    p.c_in.push_back(&p.in.emplace_back(std::move(o))->c);
  }
  p.c_in.resize(call.inputs.size());  // null: absent
  for (size_t i = 0; i < p.c_in.size(); ++i)
    if (ask.absent >> i & 1) p.c_in[i] = nullptr;
  p.results.resize(call.outputs.size());
  for (const auto& [output, input] : call.updates) p.results[output] = p.in[input].get();
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    if (!p.results[k]) {
      const auto& type = call.outputs[k];
      WEFT_TRY(auto o,
               fresh ? room(type, type.bytes() + offset, offset) : upload(holding(type, ask.before), offset));
      p.results[k] = p.out.emplace_back(std::move(o)).get();
    }
    p.c_out.push_back(&p.results[k]->c);
  }
  WEFT_TRY(p.workspace, workspace(plan.plan, offset));
  return p;
}

Status Rig::pack(const seam::PreparedKernel& plan, Placed& p) {
  for (uint32_t i = 0; plan.plan.packings && i < p.c_in.size(); ++i) {
    const weft_packing* want = plan.plan.packings[i];
    if (!want) continue;
    WEFT_TRY(auto to, room(p.in[i]->type, want->bytes));
    to->c.layout = want->layout;
    const Status packed = seam::pack(plan, i, *p.c_in[i], to->c, *queue);
    WEFT_CHECK(queue->synchronize());
    WEFT_CHECK(packed);
    p.c_in[i] = &p.packed.emplace_back(std::move(to))->c;
  }
  return {};
}

Status Rig::enqueue(seam::PreparedKernel& plan, const Placed& p, seam::Queue& on) {
  return seam::launch(plan, on, p.c_in.data(), p.c_out.data(), p.workspace ? &p.workspace->c : nullptr);
}

Result<Rig::Run> Rig::read(const Placed& placed) {
  Run run;
  for (const auto* o : placed.results) {
    WEFT_TRY(auto t, download(*o));
    run.outputs.push_back(std::move(t));
  }
  for (const auto& o : placed.in) {
    WEFT_TRY(auto t, download(*o));
    run.inputs_after.push_back(std::move(t));
  }
  return run;
}

Result<Rig::Run> Rig::launch(seam::PreparedKernel& plan, const Ask& ask, uint64_t offset) {
  WEFT_TRY(Placed placed, place(plan, ask, offset));
  WEFT_CHECK(pack(plan, placed));
  Status status = enqueue(plan, placed);
  const Status later = queue->synchronize();  // also after a refusal: the uploads are pending
  if (status.ok()) status = later;
  WEFT_CHECK(status);
  return read(placed);
}

}  // namespace weft::conformance
