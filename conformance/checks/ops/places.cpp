#include <algorithm>
#include <cmath>
#include <cstring>

#include "conformance/asks.h"
#include "conformance/check.h"
#include "conformance/edges.h"
#include "conformance/seam/candidates.h"
#include "conformance/seam/guarded.h"
#include "conformance/seam/usual.h"

// Every kernel in every case, and at every size at which loops end, with its operands in two places: once
// after the beginning of a buffer and up to its end, once at its beginning.
namespace weft::conformance::checks::places {
namespace {

/// The operands of one launch, all in the same one of the two places.
class Operands {
 public:
  Operands(Rig& rig, const seam::PreparedKernel& plan, const Ask& ask, bool at_end)
      : device_(rig.device.dl()), at_end_(at_end) {
    const auto& call = plan.call->desc();
    for (const auto& t : ask.inputs) {
      in.push_back(add(t.type));
      if (!t.bytes.empty()) std::memcpy(memory_.back().data(), t.bytes.data(), t.bytes.size());
    }
    in.resize(call.inputs.size());  // null: absent
    out.resize(call.outputs.size());
    for (const auto& [output, input] : call.updates) out[output] = in[input];
    for (size_t k = 0; k < out.size(); ++k)
      if (!out[k]) {
        out[k] = add(call.outputs[k]);
        // Elements that are not written differ between the two places.
        std::memset(memory_.back().data(), at_end ? 0xff : 0, call.outputs[k].bytes());
      }
    at_end_ = false;
    scratch_.shape = {static_cast<int64_t>(plan.plan.workspace)};
    if (plan.plan.workspace) workspace = add(scratch_);
  }

  static const std::byte* data(const weft_tensor* t) {
    return static_cast<const std::byte*>(t->dl.data) + t->dl.byte_offset;
  }
  std::vector<const weft_tensor*> in, out;
  const weft_tensor* workspace = nullptr;

 private:
  const weft_tensor* add(const seam::ConcreteType& type) {
    const Guarded& g = memory_.emplace_back(type.bytes(), at_end_);
    return &tensors_.emplace_back(tensor_at(g.begin(), type, device_, g.offset()));
  }

  DLDevice device_;
  bool at_end_;
  seam::ConcreteType scratch_{DType::u8, {}};
  std::deque<Guarded> memory_;
  std::deque<weft_tensor> tensors_;
};

// All NaNs are equal.
bool same_numbers(const seam::ConcreteType& type, const std::byte* a, const std::byte* b) {
  if (std::memcmp(a, b, type.bytes()) == 0) return true;
  if (!is_float(type.dtype)) return false;
  for (size_t i = 0; i < type.bytes() / byte_size(type.dtype); ++i) {
    const auto x = load_element<double>(type.dtype, a, i), y = load_element<double>(type.dtype, b, i);
    if (x != y && !(std::isnan(x) && std::isnan(y))) return false;
  }
  return true;
}

void launch_in_both(Rig& rig, seam::PreparedKernel& plan, const Ask& ask) {
  const Operands end(rig, plan, ask, true), begin(rig, plan, ask, false);
  for (const Operands* o : {&end, &begin}) {
    raise_if(seam::launch(plan, *rig.queue, o->in.data(), o->out.data(), o->workspace));
    raise_if(rig.queue->synchronize());
    for (size_t i = 0; i < ask.inputs.size(); ++i)
      if (std::ranges::find(o->out, o->in[i]) == o->out.end() &&
          std::memcmp(Operands::data(o->in[i]), ask.inputs[i].bytes.data(), ask.inputs[i].bytes.size()))
        throw Error(fail(Code::internal, "changed operand {}", i));
  }
  for (size_t k = 0; k < end.out.size() && plan.plan.determinism >= WEFT_DETERMINISM_RUN; ++k)
    if (!same_numbers(plan.call->desc().outputs[k], Operands::data(end.out[k]), Operands::data(begin.out[k])))
      throw Error(fail(Code::internal, "gave another result {} in another place", k));
}

/// All launches of an op: each case by each kernel that accepts it.
struct Jobs {
  std::vector<Ask> asks;
  std::vector<std::pair<seam::PreparedPtr, size_t>> plans;  ///< with the number of the ask

  Jobs(Rig& rig, const ir::OpDef& op, const OpCases& cases) : asks(asks_of(op, cases)) {
    for (auto& ask : asks_of(op, edge_cases(op))) asks.push_back(std::move(ask));
    for (size_t i = 0; i < asks.size(); ++i)
      for (auto& plan : candidates_of(rig, asks[i]).plans) plans.emplace_back(std::move(plan), i);
  }
};

Found in_child(Rig& rig, const Jobs& jobs) {
  const auto launch = [&](size_t i) {
    launch_in_both(rig, *jobs.plans[i].first, jobs.asks[jobs.plans[i].second]);
  };
  const auto said = in_children(jobs.plans.size(), launch, true);
  const auto wrong = std::ranges::find_if(said, [](auto& words) { return !words.empty(); });
  if (wrong == said.end()) return {};
  const auto& [plan, ask] = jobs.plans[static_cast<size_t>(wrong - said.begin())];
  return Found::wrong(fmt::format("{} for {}: {}", plan->kernel.id, title(jobs.asks[ask]), *wrong));
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  if (!rig.device.host_memory() || rig.device.ordered()) {
    run.run("every op", [] { return Found::skipped("a launch runs later, or its memory has no address"); });
    return;
  }
  size_t done = 0;
  for (const auto& file : case_files()) {
    run.at(done++, case_files().size());
    if (!run.wants(file.op)) continue;
    const Jobs jobs(rig, op_of(file), file.cases());
    if (!jobs.plans.empty()) run.run(file.op, [&] { return in_child(rig, jobs); });
  }
}

}  // namespace

extern const Check check = {
    "places", "wherever its operands lie, a kernel gives the same answer, and leaves them alone", run, true};

}  // namespace weft::conformance::checks::places
