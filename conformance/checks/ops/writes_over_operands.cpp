#include "conformance/asks.h"
#include "conformance/check.h"
#include "conformance/grown.h"
#include "conformance/seam/candidates.h"
#include "conformance/seam/usual.h"

// A linked program places a result in the memory of a dead operand if the kernel accepts such a call. The
// answer must equal the one in separate memory.
namespace weft::conformance::checks::writes_over_operands {
namespace {

using Updates = std::vector<std::pair<uint32_t, uint32_t>>;

std::string text(const Updates& updates) {
  std::string s;
  for (const auto& [k, n] : updates)
    s += fmt::format("{}result {} over operand {}", s.empty() ? "" : ", ", k, n);
  return s;
}

/// The same call by the same kernel with some results over operands; null if it refuses.
seam::PreparedPtr over(Rig& rig, const seam::PreparedKernel& plan, const Updates& updates) {
  seam::CallDesc desc = plan.call->desc();
  desc.updates = updates;
  auto made = rig.plan(std::make_shared<const seam::OwnedCall>(std::move(desc)), plan.kernel);
  if (!made.ok() && made.status().code() != Code::unsupported) raise_if(made.take_status());
  return made.ok() ? std::move(made).value() : nullptr;
}

/// Each result over each operand of its type, then as many results as the kernel allows.
class OfCall {
 public:
  OfCall(Rig& rig, seam::PreparedKernel& plan, const Ask& ask) : rig_(rig), plan_(plan), ask_(ask) {}

  std::string wrong() {
    const seam::CallDesc& call = plan_.call->desc();
    Updates most;
    for (uint32_t k = 0; k < call.outputs.size(); ++k) {
      bool taken = false;
      for (uint32_t n = 0; n < call.inputs.size(); ++n) {
        if (!call.inputs[n] || !(*call.inputs[n] == call.outputs[k])) continue;
        if (auto words = differs({{k, n}}); !words.empty()) return words;
        if (taken || std::ranges::any_of(most, [&](const auto& m) { return m.second == n; })) continue;
        most.emplace_back(k, n);
        taken = over(rig_, plan_, most) != nullptr;
        if (!taken) most.pop_back();
      }
    }
    return most.size() > 1 ? differs(most) : "";
  }
  size_t accepted() const { return accepted_; }

 private:
  std::string differs(const Updates& updates) {
    const auto plan = over(rig_, plan_, updates);
    if (!plan) return "";
    ++accepted_;
    if (apart_.empty()) apart_ = value_or_raise(rig_.launch(plan_, ask_)).outputs;
    const auto got = value_or_raise(rig_.launch(*plan, ask_)).outputs;
    for (size_t k = 0; k < got.size(); ++k)
      if (got[k].bytes != apart_[k].bytes)
        return fmt::format("{}: output {} is another one than in memory of its own", text(updates), k);
    return "";
  }

  Rig& rig_;
  seam::PreparedKernel& plan_;
  const Ask& ask_;
  std::vector<HostTensor> apart_;
  size_t accepted_ = 0;
};

Found of_op(Rig& rig, const ir::OpDef& op, const CaseFile& file, uint64_t seed, size_t drawn) {
  Random random(seed * 0x9e3779b97f4a7c15 + std::hash<std::string_view>()(file.op));
  auto asks = drawn_asks(op, file.cases(), drawn, random);
  if (!rig.device.capability().dialect[0])
    for (Ask& ask : asks_of(op, file.cases())) asks.push_back(std::move(ask));
  size_t accepted = 0;
  for (const Ask& ask : asks)
    for (auto& plan : candidates_of(rig, ask).plans) {
      if (!gives_equal_bits(rig, ask, plan) || !plan->call->desc().updates.empty()) continue;
      OfCall call(rig, *plan, ask);
      if (auto words = call.wrong(); !words.empty())
        return Found::wrong(fmt::format("{} for {}: {}", plan->kernel.id, title(ask), words));
      accepted += call.accepted();
    }
  return accepted ? Found() : Found::refused("no kernel writes over an operand of its calls");
}

// Where each call must be compiled, one call each of a random quarter of the ops; in full runs, of all.
void run(CheckRun& run) {
  Rig rig(run.backend());
  const bool texts = rig.device.capability().dialect[0] != 0;
  uint64_t turn = run.options().seed;
  for (const auto& file : case_files())
    if (run.wants(file.op) && (!texts || run.options().full || ++turn % 4 == 0))
      run.run(file.op, [&] {
        return of_op(rig, op_of(file), file, run.options().seed, texts && !run.options().full ? 1 : 8);
      });
}

}  // namespace

extern const Check check = {"writes_over_operands",
                            "a kernel that takes a result over an operand gives the same bits there", run};

}  // namespace weft::conformance::checks::writes_over_operands
