#include "conformance/check.h"
#include "conformance/prepared.h"
#include "conformance/run.h"
#include "ir/lower.h"

// Every op in every case and dtype, called as users do, judged element by element against the truth.
namespace weft::conformance::checks::ops {
namespace {

// Does the op compute anything, or only copy an operand?
bool wants_kernel(const PreparedCase& c) {
  std::vector<TensorType> types;
  std::vector<const TensorType*> pointers;
  for (const Array& a : c.inputs) types.push_back(type_of(a));
  for (const TensorType& t : types) pointers.push_back(&t);
  return c.op.primitive() || !value_or_raise(ir::lower_to_primitives(c.op, pointers, c.attrs)).nodes.empty();
}

// Everything ran on the requested backend, under a name, without copies to another device.
std::string wrong_ledger(const PreparedCase& c, const Outcome& ran, const std::string& backend) {
  if (ran.ledger.empty()) return wants_kernel(c) ? "no kernel is in the ledger" : "";
  for (const auto& row : ran.ledger) {
    if (row.device != backend) return fmt::format("{} ran by {} on {}", row.op, row.kernel, row.device);
    if (row.kernel.empty()) return fmt::format("{} ran by a kernel without a name", row.op);
    if (row.op != c.op.name && c.op.primitive()) return fmt::format("{} ran as {}", c.op.name, row.op);
  }
  return "";
}

Found one(CheckRun& run, const PreparedCase& c) {
  auto& cell = run.matrix[c.op.name][c.dtype];
  const auto ran = run_op(c.op, c.attrs, c.inputs, run.backend());
  if (!ran.refused.empty()) {
    const auto reason = ran.refused.substr(0, ran.refused.find('\n', ran.refused.find('\n') + 1));
    cell.refusals.insert(reason);
    return judged_refusal(c, run.backend(), ran.refused);
  }
  ++cell.cases;
  for (const auto& row : ran.ledger) {
    run.covered.insert(row.kernel);
    cell.kernels.insert(row.kernel);
    cell.decomposed |= row.op != c.op.name;
  }
  if (auto words = wrong_ledger(c, ran, run.backend()); !words.empty()) return Found::wrong(words);
  for (size_t k = 0; k < c.right.size(); ++k)
    if (const auto v = judge(ran.outputs[k], c.right[k]); !v.ok)
      return Found::wrong(fmt::format("output {}: {}", c.op.outputs[k], v.reason));
  return {};
}

void run(CheckRun& run) {
  size_t done = 0;
  for (const auto& file : case_files()) {
    run.at(done++, case_files().size());
    if (!run.wants(file.op)) continue;
    each_case(
        op_of(file), file.cases(), [&](const std::string& label) { return run.wants(label); },
        [&](const PreparedCase& c) { run.run(c.label, [&] { return one(run, c); }); });
  }
}

}  // namespace

extern const Check check = {
    "ops", "every op gives the right answer in every case and dtype that the device claims", run};

}  // namespace weft::conformance::checks::ops
