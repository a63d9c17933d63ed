#include <cstring>

#include "conformance/check.h"
#include "conformance/seam/usual.h"

// Tensors at an offset in their memory, and with strides.
namespace weft::conformance::checks::honours_places {
namespace {

// Every operand, and the workspace, follows other numbers in its memory.
Found at_an_offset(Rig& rig, const Ask& ask) {
  const uint64_t step = std::max<uint64_t>(64, rig.device.capability().offset_alignment);
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  const auto want = value_or_raise(Rig("reference").run(ask));
  const auto got = value_or_raise(rig.launch(*plan, ask, step));
  for (size_t k = 0; k < got.outputs.size(); ++k)
    if (got.outputs[k].bytes != want.outputs[k].bytes)
      return Found::wrong(fmt::format("{} at byte {}: the answer is another one", ask.op, step));
  return {};
}

/// A call whose first operand is strided, offered to each kernel as the seam would.
class StridedCall {
 public:
  StridedCall(const weft_call& plain, const IntList& strides) : call_(plain), first_(*plain.inputs[0]) {
    first_.strides = strides.data();
    inputs_.assign(plain.inputs, plain.inputs + plain.n_inputs);
    inputs_[0] = &first_;
    call_.inputs = inputs_.data();
  }
  StridedCall(const StridedCall&) = delete;
  const weft_call* c() const { return &call_; }

 private:
  weft_call call_;
  weft_type first_;
  std::vector<const weft_type*> inputs_;
};

// A matrix passed as a transposed view: a kernel that accepts it must read it so.
Found strided(Rig& rig, const char* op) {
  const int64_t rows = 3, columns = 5;
  const auto stored = counting({columns, rows}), other = counting({rows, columns}, 4);
  HostTensor logical = array({rows, columns}, {0});
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      std::memcpy(&logical.bytes[static_cast<size_t>(4 * (r * columns + c))],
                  &stored.bytes[static_cast<size_t>(4 * (c * rows + r))], 4);
  const IntList strides = {1, rows};
  const auto plain = value_or_raise(describe({op, {logical, other}}));
  const auto want = value_or_raise(Rig("reference").run({op, {logical, other}}));
  const StridedCall call(*plain->c(), strides);
  std::string refusals;
  int took = 0;
  for (const auto& source : rig.device.sources)
    for (const weft_kernel* k : source.kernels) {
      if (std::string_view(k->op) != op) continue;
      seam::CError e;
      if (k->accepts(k, rig.device.c(), call.c(), e.out()) != WEFT_OK) {
        refusals += fmt::format("{}{}: {}", refusals.empty() ? "" : "; ", k->id, e.text());
        continue;
      }
      ++took;
      weft_plan plan{.size = sizeof plan, .determinism = k->determinism, .kernel = k, .call = call.c()};
      if (k->prepare && k->prepare(k, rig.device.c(), call.c(), &plan, e.out()) != WEFT_OK)
        return Found::wrong(
            fmt::format("{} accepted a strided operand and can't prepare: {}", k->id, e.text()));
      const auto x = value_or_raise(rig.upload(stored)), y = value_or_raise(rig.upload(other)),
                 z = value_or_raise(rig.upload(array({rows, columns}, {0})));
      x->type.shape = {rows, columns};
      x->c.dl.shape = x->type.shape.data(), x->c.dl.strides = const_cast<int64_t*>(strides.data());
      const auto workspace = value_or_raise(rig.workspace(plan));
      const weft_tensor *in[] = {&x->c, &y->c}, *out[] = {&z->c};
      const weft_launch launch{.size = sizeof launch,
                               .plan = &plan,
                               .device = rig.device.c(),
                               .queue = rig.queue->c(),
                               .inputs = in,
                               .outputs = out,
                               .workspace = workspace ? &workspace->c : nullptr};
      const weft_code code = k->launch(&launch, e.out());
      const Status later = rig.queue->synchronize();
      if (k->release) k->release(&plan);
      if (code != WEFT_OK || !later.ok())
        return Found::wrong(fmt::format("{} accepted a strided operand and failed: {}", k->id,
                                        code != WEFT_OK ? e.text() : later.message()));
      if (value_or_raise(rig.download(*z)).bytes != want.outputs[0].bytes)
        return Found::wrong(fmt::format("{} accepted a strided operand and read it as rows", k->id));
    }
  return took ? Found() : Found::refused(refusals);
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (const Ask& ask : usual_calls())
    run.run(title(ask) + " at an offset", [&] { return at_an_offset(rig, ask); });
  for (const char* op : {"add", "mul", "sub"})
    run.run(fmt::format("{} of a transposed matrix", op), [&] { return strided(rig, op); });
}

}  // namespace

extern const Check check = {"honours_places",
                            "operands are read where they lie: at their offset, by their strides", run};

}  // namespace weft::conformance::checks::honours_places
