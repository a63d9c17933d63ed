#include "conformance/check.h"
#include "conformance/grown.h"
#include "conformance/prepared.h"
#include "conformance/seam/candidates.h"
#include "conformance/seam/usual.h"

// One plan with its operands at fixed addresses, each changed in turn: entirely, in its last element, in a
// random one. The answer must be that of a fresh plan in fresh memory.
namespace weft::conformance::checks::reads_operands_anew {
namespace {

/// Overwrites everything that earlier launches left.
void renew(Rig& rig, const Rig::Placed& placed, const Ask& ask) {
  for (size_t i = 0; i < ask.inputs.size(); ++i)
    raise_if(rig.queue->copy_in(*placed.in[i]->buffer.get(), 0, ask.inputs[i].bytes.data(),
                                ask.inputs[i].bytes.size()));
  for (const auto& out : placed.out) {
    const std::vector<std::byte> poison(out->type.bytes(), std::byte{0xff});
    raise_if(rig.queue->copy_in(*out->buffer.get(), 0, poison.data(), poison.size()));
  }
}

std::string differs(Rig& rig, seam::PreparedKernel& plan, const Rig::Placed& placed, const Ask& ask) {
  renew(rig, placed, ask);
  raise_if(rig.enqueue(plan, placed));
  raise_if(rig.queue->synchronize());
  const auto got = value_or_raise(rig.read(placed));
  const auto fresh = value_or_raise(rig.plan(plan.call, plan.kernel));
  const auto want = value_or_raise(rig.launch(*fresh, ask));
  for (size_t k = 0; k < want.outputs.size(); ++k)
    if (got.outputs[k].bytes != want.outputs[k].bytes)
      return fmt::format("output {} is another one than a new plan gives for them", k);
  return "";
}

std::string changed_in_turn(Rig& rig, seam::PreparedKernel& plan, const Ask& ask, Random& random) {
  const auto placed = value_or_raise(rig.place(plan, ask));
  if (auto words = differs(rig, plan, placed, ask); !words.empty()) return "at first, " + words;
  for (int variant = 0; variant < 3; ++variant)
    for (size_t i = 0; i < ask.inputs.size(); ++i) {
      const auto other = other_data(ask.inputs[i], variant, random);
      if (!other) continue;
      Ask changed = ask;
      changed.inputs[i] = *other;
      if (auto words = differs(rig, plan, placed, changed); !words.empty())
        return fmt::format("with operand {} changed in place, {}", i, words);
    }
  auto words = differs(rig, plan, placed, ask);
  return words.empty() ? "" : "with the first data again, " + words;
}

Found of_op(Rig& rig, const ir::OpDef& op, const CaseFile& file, uint64_t seed, size_t calls) {
  Random random(seed * 0x9e3779b97f4a7c15 + std::hash<std::string_view>()(file.op));
  size_t asked = 0;
  for (const Ask& ask : drawn_asks(op, file.cases(), calls, random))
    for (auto& plan : candidates_of(rig, ask).plans) {
      if (!gives_equal_bits(rig, ask, plan)) continue;
      ++asked;
      if (auto words = changed_in_turn(rig, *plan, ask, random); !words.empty())
        return Found::wrong(fmt::format("{} for {}: {}", plan->kernel.id, title(ask), words));
    }
  return asked ? Found() : Found::refused("no kernel takes any of its calls and promises equal bits");
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  const size_t calls = rig.device.capability().dialect[0] ? 1 : 8;
  for (const auto& file : case_files())
    if (run.wants(file.op))
      run.run(file.op, [&] { return of_op(rig, op_of(file), file, run.options().seed, calls); });
}

}  // namespace

extern const Check check = {"reads_operands_anew",
                            "a plan follows each operand that changes in place, in any of its elements", run};

}  // namespace weft::conformance::checks::reads_operands_anew
