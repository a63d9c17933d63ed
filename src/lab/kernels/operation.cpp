#include "lab/kernels/operation.h"

#include <algorithm>

#include "conformance/bounds.h"
#include "conformance/noise.h"
#include "conformance/seam/candidates.h"
#include "conformance/seam/describe.h"
#include "lab/kernels/call_json.h"

namespace weft::lab {
namespace {

using conformance::Array;

std::vector<TensorType> types_of(const Operation& o) {
  std::vector<TensorType> types;
  for (const auto& input : o.call.inputs)
    types.push_back({input.dtype.value_or(o.dtype), to_shape(input.shape)});
  return types;
}

// Ops that only move elements compute nothing.
bool computes(std::string_view op) {
  constexpr std::string_view kMoves[] = {"broadcast", "cast",    "concat",  "gather", "iota", "full",
                                         "pad",       "permute", "reshape", "slice",  "where"};
  return std::ranges::find(kMoves, op) == std::end(kMoves);
}

}  // namespace

const ir::OpDef& Operation::definition() const {
  if (own) return *own;
  const ir::OpDef* found = ir::find_op(op);
  if (!found) throw Error(invalid("no op named {}", op));
  return *found;
}

Result<conformance::OpCases> Operation::cases() const {
  if (own_cases) return own_cases();
  for (const auto& file : conformance::case_files())
    if (op == file.op) return file.cases();
  return invalid("conformance has no cases of {}", op);
}

std::string Operation::label() const { return fmt::format("{}, {}", text(ask_of(*this)), where); }

const ir::OpDef* own_definition(std::string_view op) {
  for (const auto& named : operation_files())
    if (named.op == op) return named.file().definition;
  return nullptr;
}

Result<seam::CallPtr> describe(const conformance::Ask& ask) {
  const ir::OpDef* op = own_definition(ask.op);
  return op ? conformance::describe(*op, ask) : conformance::describe(ask);
}

bool falls_apart(const Operation& o, const IntList& results) {
  return std::ranges::all_of(o.rows, [&](const Rows& r) {
    const auto axis = static_cast<size_t>(r.results);
    if (axis >= results.size() || results[axis] % r.result_block) return false;
    const int64_t blocks = results[axis] / r.result_block;
    for (size_t i = 0; i < o.call.inputs.size(); ++i) {
      const int64_t block = r.operand_blocks.empty() ? 1 : r.operand_blocks[i];
      const int a = r.operands.at(i);
      if (a >= 0 && o.call.inputs[i].shape[static_cast<size_t>(a)] != blocks * block) return false;
    }
    return true;
  });
}

conformance::Ask ask_of(const Operation& o, const std::vector<Array>& inputs) {
  conformance::Ask ask{
      .op = o.op, .inputs = {}, .attrs = o.call.attrs, .constants = o.constants, .one_size = o.one_size};
  for (const Array& a : inputs) ask.inputs.push_back(conformance::host_tensor(a));
  return ask;
}

conformance::Ask ask_of(const Operation& o) {
  conformance::Ask ask{
      .op = o.op, .inputs = {}, .attrs = o.call.attrs, .constants = o.constants, .one_size = o.one_size};
  for (const auto& i : o.call.inputs)
    ask.inputs.push_back({{i.dtype.value_or(o.dtype), IntList(i.shape.begin(), i.shape.end())}, {}});
  return ask;
}

Result<Work> work_of(const Operation& o) {
  WEFT_TRY(const auto attrs, ir::order_attrs(o.definition(), o.call.attrs));
  WEFT_TRY(const auto graph, conformance::graph_of(o.definition(), attrs, types_of(o)));
  const auto elements = [&](int32_t id) {
    return static_cast<double>(element_count(graph.types[static_cast<size_t>(id)].shape).value());
  };
  const auto bytes = [&](int32_t id) {
    return elements(id) * byte_size(graph.types[static_cast<size_t>(id)].dtype);
  };
  Work work;
  for (const auto& i : graph.inputs) work.bytes += bytes(i.value);
  for (const auto& r : graph.outputs) work.bytes += bytes(r.value);
  if (o.touched) work.bytes = static_cast<double>(o.touched) * byte_size(o.dtype);
  for (const auto& node : graph.nodes) {
    const auto terms = static_cast<double>(conformance::accumulated_terms(graph, node));
    const double each = std::string_view(node.op->name) == "sum" ? terms : terms > 1 ? 2 * terms : 1;
    if (computes(node.op->name))
      for (const int32_t id : node.outputs) work.flops += each * elements(id);
  }
  return work;
}

}  // namespace weft::lab
