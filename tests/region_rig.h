#pragma once
#include <gtest/gtest.h>

#include "conformance/bounds.h"
#include "conformance/seam/rig.h"
#include "ir/builder.h"
#include "test_backends.h"

// Kernels of whole bodies: graphs as the body of one call, and what a kernel makes of it.
namespace weft::testing::region_rig {

using namespace conformance;

/// The graph's primitives as the body of one call.
inline seam::CallDesc region_of(const ir::Graph& composite) {
  const ir::Graph g = value_or_raise(lowered(composite));
  seam::CallDesc desc;
  desc.op = "region";
  auto region = std::make_shared<seam::RegionDesc>();
  std::map<int32_t, uint32_t> number;
  const auto add = [&](int32_t id) {
    const auto& t = g.types[static_cast<size_t>(id)];
    number[id] = static_cast<uint32_t>(region->values.size());
    seam::ConcreteType type{t.dtype, {}};
    for (const Dim d : t.shape) type.shape.push_back(d.value());
    region->values.push_back(type);
    return type;
  };
  for (const auto& in : g.inputs) desc.inputs.push_back(add(in.value));
  region->n_inputs = static_cast<uint32_t>(g.inputs.size());
  for (const auto& node : g.nodes) {
    std::vector<const TensorType*> in;
    std::vector<TensorType> out;
    seam::StepDesc step;
    for (const int32_t id : node.inputs) {
      in.push_back(id < 0 ? nullptr : &g.types[static_cast<size_t>(id)]);
      step.inputs.push_back(id < 0 ? UINT32_MAX : number.at(id));
    }
    for (const int32_t id : node.outputs) {
      out.push_back(g.types[static_cast<size_t>(id)]);
      add(id);
      step.outputs.push_back(number.at(id));
    }
    step.call = value_or_raise(eager::describe(*node.op, in, out, node.attrs));
    region->steps.push_back(std::move(step));
  }
  for (const auto& out : g.outputs) {
    region->outputs.push_back(number.at(out.value));
    desc.outputs.push_back(region->values[number.at(out.value)]);
  }
  desc.region = std::move(region);
  return desc;
}

/// A graph of f32 and its inputs.
struct Layer {
  ir::Graph graph;
  Ask ask;
};

inline HostTensor drawn(IntList shape, uint64_t seed) {
  Random random(seed);
  HostTensor t = array(shape, {0});
  for (size_t i = 0; i < t.bytes.size() / 4; ++i)
    store_element(DType::f32, t.bytes.data(), i, random.normal());
  return t;
}

/// The kernel's plan for the layer as one call, or why there is none.
inline Result<seam::PreparedPtr> region_plan(Rig& rig, const Layer& l, const char* id) {
  const auto call = std::make_shared<const seam::OwnedCall>(region_of(l.graph));
  return seam::prepare_with(rig.device, *seam::registry().find_kernel(rig.device, id), call);
}
/// Runs it, and holds the result to the bounds of the layer's own ops.
inline void expect_right(Rig& rig, const seam::PreparedPtr& made, const Layer& l) {
  const auto run = value_or_raise(rig.launch(*made, l.ask));
  std::vector<Bounded> in;
  for (const auto& t : l.ask.inputs)
    in.push_back(exactly(decode(DType::f32, {t.type.shape.begin(), t.type.shape.end()}, t.bytes)));
  const ir::Graph g = value_or_raise(lowered(l.graph));
  const auto right = bound_graph(g, std::move(in))[static_cast<size_t>(g.outputs[0].value)];
  const auto& y = run.outputs[0];
  const auto verdict = judge(decode(DType::f32, {y.type.shape.begin(), y.type.shape.end()}, y.bytes), right);
  EXPECT_TRUE(verdict.ok) << verdict.reason;
}

// ---- convolutions and what follows them

struct Conv {
  IntList x, w;
  Shape stride = {}, padding = {}, dilation = {};
  int64_t groups = 1;
};
/// What follows y; `more` makes a further input of a shape.
using Behind = ir::Value (*)(ir::Builder&, ir::Value y, const std::function<ir::Value(IntList)>& more);

inline Layer convolution(const char* op, const Conv& c, const Behind& behind) {
  Layer l;
  l.ask = {.op = "region", .inputs = {}};
  const auto more = [&](IntList shape) {
    l.ask.inputs.push_back(drawn(shape, 5 + l.ask.inputs.size()));
    return l.graph.input(fmt::format("{}", l.ask.inputs.size()),
                         {DType::f32, to_shape(std::span<const int64_t>(shape))});
  };
  const auto in = more(c.x), filters = more(c.w);
  const auto y = l.graph.one(
      op, {in, filters},
      {{"stride", c.stride}, {"padding", c.padding}, {"dilation", c.dilation}, {"groups", c.groups}});
  l.graph.output("y", behind(l.graph, y, more));
  return l;
}
inline IntList sizes_of(ir::Value y) {
  IntList all;
  for (const Dim d : y.shape()) all.push_back(d.value());
  return all;
}

}  // namespace weft::testing::region_rig
