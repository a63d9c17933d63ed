#include "lab/kernels/operation.h"

#include <algorithm>

#include "conformance/bounds.h"
#include "conformance/noise.h"
#include "conformance/seam/candidates.h"
#include "lab/kernels/call_json.h"

namespace weft::lab {
namespace {

using conformance::Array;
using conformance::integers;
using conformance::normal;

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
  const ir::OpDef* found = ir::find_op(op);
  if (!found) throw Error(invalid("no op named {}", op));
  return *found;
}

std::string Operation::label() const { return fmt::format("{}, {}", text(ask_of(*this)), where); }

const std::vector<Operation>& all_operations() {
  static const std::vector<Operation> all = {
      {"add",
       "a residual of GPT-2 124M",
       {.inputs = {normal({512, 768}), normal({512, 768})}},
       DType::f32,
       {{{0, 0}, 0}}},
      {"gelu", "GPT-2 124M", {.inputs = {normal({512, 3072})}}, DType::f32, {{{0}, 0}}},
      {"silu", "Llama 8B, 16 tokens", {.inputs = {normal({16, 14336})}}, DType::f32, {{{0}, 0}}},
      {"softmax",
       "GPT-2 124M, scores of 12 heads",
       {.inputs = {normal({1536, 128})}},
       DType::f32,
       {{{0}, 0}}},
      {"softmax", "GPT-2's vocabulary", {.inputs = {normal({8, 50257})}}, DType::f32, {{{0}, 0}}},
      {"layer_norm",
       "GPT-2 124M",
       {.inputs = {normal({512, 768}), normal({768}), normal({768})}},
       DType::f32,
       {{{0, -1, -1}, 0}}},
      {"rms_norm",
       "Llama 8B, 64 tokens",
       {.inputs = {normal({64, 4096}), normal({4096})}},
       DType::f32,
       {{{0, -1}, 0}}},
      {"sum",
       "rows of Llama 8B",
       {.inputs = {normal({512, 4096})}, .attrs = {{"axes", Shape{1}}}},
       DType::f32,
       {{{0}, 0}}},
      {"transpose", "a matrix of 1,024", {.inputs = {normal({1024, 1024})}}, DType::f32, {{{1}, 0}}},
      {"matmul",
       "GPT-2 124M, 128 tokens",
       {.inputs = {normal({128, 768}), normal({768, 3072})}},
       DType::f32,
       {{{0, -1}, 0}, {{-1, 1}, 1}}},
      {"matmul",
       "Llama 8B, a token",
       {.inputs = {normal({1, 4096}), normal({4096, 4096})}},
       DType::f32,
       {{{-1, 1}, 1}}},
      {"attention",
       "GPT-2 124M, prefill",
       {.inputs = {normal({1, 12, 128, 64}), normal({1, 12, 128, 64}), normal({1, 12, 128, 64})},
        .attrs = {{"causal", 1}}},
       DType::f32,
       {{{1, 1, 1}, 1}}},
      {"attention",
       "GPT-2 124M, decode",
       {.inputs = {normal({1, 12, 1, 64}), normal({1, 12, 512, 64}), normal({1, 12, 512, 64})}},
       DType::f32,
       {{{1, 1, 1}, 1}}},
      {"rope",
       "Llama 8B, 128 tokens",
       {.inputs = {normal({32, 128, 128}), normal({128, 64}), normal({128, 64})}},
       DType::f32,
       {{{0, -1, -1}, 0}}},
      {"embedding",
       "GPT-2 124M",
       {.inputs = {normal({50257, 768}), integers({128}, 0, 50256).as(DType::i32)}},
       DType::f32,
       {{{-1, 0}, 0}, {{1, -1}, 1}}},
      {"conv",
       "ResNet-50, 3 x 3",
       {.inputs = {normal({1, 64, 56, 56}), normal({64, 64, 3, 3})},
        .attrs = {{"padding", Shape{1, 1, 1, 1}}}},
       DType::f32,
       {{{-1, 0}, 1}}},
  };
  return all;
}

Result<std::vector<Operation>> operations_of(const std::vector<std::string>& ops) {
  const auto& all = all_operations();
  for (const auto& op : ops)
    if (std::ranges::find(all, op, &Operation::op) == all.end()) {
      std::string known;
      for (const auto& o : all)
        if (known.find(o.op) == std::string::npos) known += (known.empty() ? "" : ", ") + o.op;
      return invalid("the lab compares no kernels of '{}'; there are {}", op, known);
    }
  std::vector<Operation> chosen;
  std::ranges::copy_if(all, std::back_inserter(chosen), [&](const Operation& o) {
    return ops.empty() || std::ranges::find(ops, o.op) != ops.end();
  });
  return chosen;
}

conformance::Ask ask_of(const Operation& o, const std::vector<Array>& inputs) {
  conformance::Ask ask{.op = o.op, .inputs = {}, .attrs = o.call.attrs};
  for (const Array& a : inputs) ask.inputs.push_back(conformance::host_tensor(a));
  return ask;
}

conformance::Ask ask_of(const Operation& o) {
  conformance::Ask ask{.op = o.op, .inputs = {}, .attrs = o.call.attrs};
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
  for (const auto& node : graph.nodes) {
    const auto terms = static_cast<double>(conformance::accumulated_terms(graph, node));
    const double each = std::string_view(node.op->name) == "sum" ? terms : terms > 1 ? 2 * terms : 1;
    if (computes(node.op->name))
      for (const int32_t id : node.outputs) work.flops += each * elements(id);
  }
  return work;
}

}  // namespace weft::lab
