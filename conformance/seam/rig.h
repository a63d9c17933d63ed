#pragma once
#include "base/element.h"
#include "eager/describe.h"
#include "ir/builder.h"
#include "runtime/session.h"
#include "seam/plan.h"
#include "seam/registry.h"
#include "weft/tensor.h"

// One call on one backend through the seam, below eager: the test chooses what lies in the outputs before.
namespace weft::conformance {

using runtime::HostTensor;

/// The default backend while it lives.
class OnBackend {
 public:
  explicit OnBackend(const std::string& name) : before_(default_backend()) { set_default_backend(name); }
  ~OnBackend() { set_default_backend(before_); }
  OnBackend(const OnBackend&) = delete;

 private:
  std::string before_;
};

inline HostTensor array(IntList shape, const std::vector<double>& values, DType dtype = DType::f32) {
  HostTensor t{{dtype, std::move(shape)}, {}};
  t.bytes.resize(t.type.bytes());
  const size_t n = t.bytes.size() / byte_size(dtype);
  for (size_t i = 0; i < n; ++i) store_element(dtype, t.bytes.data(), i, values[i % values.size()]);
  return t;
}
/// 1, 2, 3, ... from `first` on: sums and products of these are exact, so every backend gives equal bits.
inline HostTensor counting(IntList shape, double first = 1, DType dtype = DType::f32) {
  std::vector<double> v(static_cast<size_t>(element_count(std::span<const int64_t>(shape))));
  for (size_t i = 0; i < v.size(); ++i) v[i] = first + static_cast<double>(i % 11);
  return array(std::move(shape), v.empty() ? std::vector<double>{0} : v, dtype);
}
inline std::vector<double> numbers(const HostTensor& t) {
  std::vector<double> out(t.bytes.size() / byte_size(t.type.dtype));
  for (size_t i = 0; i < out.size(); ++i) out[i] = load_element<double>(t.type.dtype, t.bytes.data(), i);
  return out;
}

struct Ask {
  std::string op;
  std::vector<HostTensor> inputs;
  std::vector<Attr> attrs = {};
  uint64_t accumulate = 0;
  double before = std::numeric_limits<double>::quiet_NaN();  ///< what each output holds before the launch
};

inline Result<seam::CallPtr> describe(const Ask& ask) {
  const ir::OpDef* op = ir::find_op(ask.op);
  if (!op) return invalid("no op named {}", ask.op);
  std::deque<TensorType> types;
  std::vector<const TensorType*> in;
  for (const auto& t : ask.inputs) {
    const std::span<const int64_t> dims(t.type.shape);
    in.push_back(&types.emplace_back(TensorType{t.type.dtype, to_shape(dims)}));
  }
  in.resize(op->n_inputs);  // the rest is absent
  WEFT_TRY(auto attrs, ir::order_attrs(*op, ask.attrs));
  WEFT_TRY(const auto out, op->infer(ir::Types(in), attrs));
  ir::settle_attrs(*op, ir::Types(in), attrs);
  WEFT_TRY(auto desc, eager::describe(*op, in, out, attrs));
  desc.accumulate = ask.accumulate;
  return seam::CallPtr(std::make_shared<const seam::OwnedCall>(std::move(desc)));
}

/// A device with a queue of the test's own.
class Rig {
 public:
  explicit Rig(const std::string& backend) : device(*value_or_raise(seam::registry().open(backend))) {
    queue = value_or_raise(device.open_queue());
  }

  struct Operand {
    seam::BufferRef buffer;
    seam::ConcreteType type;
    weft_tensor c;
  };
  Result<std::unique_ptr<Operand>> upload(const HostTensor& t) {
    auto o = std::make_unique<Operand>();
    o->type = t.type;
    WEFT_TRY(o->buffer, device.allocate_unpooled(t.bytes.size()));
    WEFT_CHECK(queue->copy_in(*o->buffer.get(), 0, t.bytes.data(), t.bytes.size()));
    const auto& i = info(t.type.dtype);
    o->c = {.dl = {.data = o->buffer->handle,
                   .device = device.dl(),
                   .ndim = static_cast<int32_t>(o->type.shape.size()),
                   .dtype = {i.dlpack_code, static_cast<uint8_t>(8 * i.bytes), 1},
                   .shape = o->type.shape.data(),
                   .strides = nullptr,
                   .byte_offset = 0},
            .size = sizeof(weft_tensor),
            .layout = 0,
            .logical_shape = nullptr,
            .alignment = 64};
    return o;
  }
  Result<HostTensor> download(const Operand& o) {
    HostTensor t{o.type, std::vector<std::byte>(o.type.bytes())};
    WEFT_CHECK(queue->copy_out(t.bytes.data(), *o.buffer.get(), 0, t.bytes.size()));
    return t;
  }
  /// A refusal is a Status of code unsupported with every reason.
  Result<seam::PlanPtr> plan(const seam::CallPtr& call) {
    std::vector<seam::Refusal> refusals;
    WEFT_TRY(auto plan, seam::select(device, call, &refusals));
    if (!plan) return seam::refused(device, call->desc(), refusals, {}, {});
    return plan;
  }

  /// By this kernel and no other; unsupported, with its reason, where it refuses.
  Result<seam::PlanPtr> plan(const seam::CallPtr& call, const weft_kernel& kernel) {
    return seam::plan_with(device, kernel, call);
  }

  struct Run {
    std::vector<HostTensor> outputs, inputs_after;
  };
  /// Outputs hold `ask.before` in every element when the launch begins.
  Result<Run> launch(seam::Plan& plan, const Ask& ask) {
    std::vector<std::unique_ptr<Operand>> in, out;
    std::vector<const weft_tensor*> c_in, c_out;
    for (const auto& t : ask.inputs) {
      WEFT_TRY(auto o, upload(t));
      c_in.push_back(&in.emplace_back(std::move(o))->c);
    }
    c_in.resize(plan.call->desc().inputs.size());  // null: absent
    const auto& outputs = plan.call->desc().outputs;
    std::vector<Operand*> results(outputs.size());
    for (const auto& [output, input] : plan.call->desc().updates) results[output] = in[input].get();
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (!results[k]) {
        HostTensor before = array(outputs[k].shape, {ask.before}, outputs[k].dtype);
        if (ask.before != ask.before) std::fill(before.bytes.begin(), before.bytes.end(), std::byte{0xff});
        WEFT_TRY(auto o, upload(before));
        results[k] = out.emplace_back(std::move(o)).get();
      }
      c_out.push_back(&results[k]->c);
    }
    std::unique_ptr<Operand> workspace;
    if (plan.prepared.workspace > 0) {
      WEFT_TRY(workspace, upload(array({static_cast<int64_t>(plan.prepared.workspace)}, {255}, DType::u8)));
    }
    Status status =
        seam::launch(plan, *queue, c_in.data(), c_out.data(), workspace ? &workspace->c : nullptr);
    const Status later = queue->synchronize();  // also after a refusal: the uploads are pending
    if (status.ok()) status = later;
    WEFT_CHECK(status);
    Run run;
    for (const auto* o : results) {
      WEFT_TRY(auto t, download(*o));
      run.outputs.push_back(std::move(t));
    }
    for (const auto& o : in) {
      WEFT_TRY(auto t, download(*o));
      run.inputs_after.push_back(std::move(t));
    }
    return run;
  }
  Result<Run> run(const Ask& ask) {
    WEFT_TRY(const auto call, describe(ask));
    WEFT_TRY(const auto chosen, plan(call));
    return launch(*chosen, ask);
  }

  seam::Device& device;
  std::unique_ptr<seam::Queue> queue;
};

}  // namespace weft::conformance
