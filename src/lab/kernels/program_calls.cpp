#include "lab/kernels/program_calls.h"

#include <algorithm>
#include <map>

#include "ir/op.h"
#include "lab/calls.h"
#include "seam/preference.h"

namespace weft::lab {
namespace {

// The call as an operation, if all of its operands are floats. The last ones may be absent.
std::optional<Operation> operation_of(const seam::CallDesc& call) {
  if (!ir::find_op(call.op)) return std::nullopt;
  Operation o{.op = call.op, .where = "", .call = {.inputs = {}, .attrs = call.attrs}};
  size_t given = call.inputs.size();
  while (given > 0 && !call.inputs[given - 1]) --given;
  for (const auto& input : std::span(call.inputs).first(given)) {
    if (!input || !is_float(input->dtype) || element_count(std::span(input->shape)) == 0) return std::nullopt;
    o.call.inputs.push_back(conformance::normal({input->shape.begin(), input->shape.end()}).as(input->dtype));
  }
  if (o.call.inputs.empty()) return std::nullopt;
  o.dtype = *o.call.inputs[0].dtype;
  for (const auto& constant : call.constants)
    o.constants |= uint64_t{1} << constant.input, o.one_size = constant.one_size;
  return o;
}

}  // namespace

Result<ProgramCalls> operations_of_program(const program::CompiledProgram& program,
                                           std::span<const runtime::HostTensor> inputs) {
  WEFT_TRY(const auto p, without_symbols(program, inputs));
  struct Alike {
    Operation operation;
    size_t calls = 0;
  };
  std::vector<Alike> found;
  std::map<std::string, size_t> known;
  ProgramCalls all;
  for (size_t i = 0; i < p.calls.size(); ++i) {
    WEFT_TRY(auto call, describe(p, i));
    call.constants = constants_of(p, i, program.symbols.empty());
    auto o = operation_of(call);
    if (!o) {
      ++all.left_out;
      continue;
    }
    const auto [at, is_new] = known.try_emplace(seam::signature(call), found.size());
    if (is_new) {
      WEFT_CHECK(take_rows(*o));
      found.push_back({std::move(*o)});
    }
    ++found[at->second].calls;
  }
  if (found.empty())
    return invalid("{} has no call that the lab compares kernels on: an op of floats that was not fused",
                   p.name);
  for (auto& [operation, calls] : found) {
    operation.where =
        calls == 1 ? fmt::format("a call of {}", p.name) : fmt::format("{} calls of {}", calls, p.name);
    all.operations.push_back(std::move(operation));
  }
  return all;
}

}  // namespace weft::lab
