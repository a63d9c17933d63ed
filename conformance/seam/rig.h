#pragma once
#include "base/element.h"
#include "eager/describe.h"
#include "ir/builder.h"
#include "runtime/session.h"
#include "seam/prepared_kernel.h"
#include "seam/registry.h"
#include "weft/tensor.h"

// One call on one backend through the seam, below eager: the test chooses the outputs' previous contents.
namespace weft::conformance {

using runtime::HostTensor;

inline HostTensor array(IntList shape, const std::vector<double>& values, DType dtype = DType::f32) {
  HostTensor t{{dtype, std::move(shape)}, {}};
  t.bytes.resize(t.type.bytes());
  const size_t n = t.bytes.size() / byte_size(dtype);
  for (size_t i = 0; i < n; ++i) store_element(dtype, t.bytes.data(), i, values[i % values.size()]);
  return t;
}
/// first, first + 1, ...: sums and products of these are exact, so every backend gives equal bits.
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
  uint64_t absent = 0;  ///< bit i: input i is optional, and not given
  /// What each output holds before the launch: these over and over.
  std::vector<double> before = {std::numeric_limits<double>::quiet_NaN()};
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
  for (size_t i = 0; i < in.size(); ++i)
    if (ask.absent >> i & 1) in[i] = nullptr;
  WEFT_TRY(auto attrs, ir::order_attrs(*op, ask.attrs));
  WEFT_TRY(const auto out, op->infer(ir::Types(in), attrs));
  ir::settle_attrs(*op, ir::Types(in), attrs);
  WEFT_TRY(auto desc, eager::describe(*op, in, out, attrs));
  desc.accumulate = ask.accumulate;
  return seam::CallPtr(std::make_shared<const seam::OwnedCall>(std::move(desc)));
}

/// A device with the test's own queue.
class Rig {
 public:
  explicit Rig(const std::string& backend) : Rig(*value_or_raise(seam::registry().open(backend))) {}
  explicit Rig(seam::Device& d) : device(d), queue(value_or_raise(d.open_queue())) {}

  struct Operand {
    seam::BufferRef buffer;
    seam::ConcreteType type;
    weft_tensor c;
  };
  /// With an offset, it is that far from the beginning of its memory, among other numbers.
  Result<std::unique_ptr<Operand>> upload(const HostTensor& t, uint64_t offset = 0);
  Result<HostTensor> download(const Operand& o);
  /// The workspace of a launch, filled with 255; null if it needs none.
  Result<std::unique_ptr<Operand>> workspace(const weft_plan& plan, uint64_t offset = 0);

  /// A refusal is a Status of code unsupported with every reason.
  Result<seam::PreparedPtr> plan(const seam::CallPtr& call);
  /// By this kernel alone; unsupported, with its reason, if it refuses.
  Result<seam::PreparedPtr> plan(const seam::CallPtr& call, const weft_kernel& kernel) {
    return seam::prepare_with(device, kernel, call);
  }

  /// The arguments of one launch. Must live until the queue has completed it.
  struct Placed {
    std::vector<std::unique_ptr<Operand>> in, out;  ///< `out`: those that are no operand's update
    std::unique_ptr<Operand> workspace;
    std::vector<const weft_tensor*> c_in, c_out;
    std::vector<const Operand*> results;
  };
  /// Outputs hold `ask.before` when the launch begins. The copies are in the queue.
  Result<Placed> place(const seam::PreparedKernel& plan, const Ask& ask, uint64_t offset = 0);
  Status enqueue(seam::PreparedKernel& plan, const Placed& placed) { return enqueue(plan, placed, *queue); }
  Status enqueue(seam::PreparedKernel& plan, const Placed& placed, seam::Queue& on);

  struct Run {
    std::vector<HostTensor> outputs, inputs_after;
  };
  Result<Run> read(const Placed& placed);
  /// All of it: uploads, launches, waits and reads.
  Result<Run> launch(seam::PreparedKernel& plan, const Ask& ask, uint64_t offset = 0);
  Result<Run> run(const Ask& ask) {
    WEFT_TRY(const auto call, describe(ask));
    WEFT_TRY(const auto chosen, plan(call));
    return launch(*chosen, ask);
  }

  seam::Device& device;
  std::unique_ptr<seam::Queue> queue;
};

}  // namespace weft::conformance
