#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compiler/recompose.h"
#include "conformance/noise.h"

// Graphs in small ops, and what the compiler makes of them.
namespace weft::testing::recompose_rig {

using compiler::Recomposition;
using conformance::Array;
using ir::Graph;
using ir::Value;

inline const TensorType kRows{DType::f32, {3, 5, 8}};

/// A graph that should become what `ops` says, or, where it is nearly the op of `but`, should not.
struct Written {
  const char* how;
  Value (*write)(Graph&, DType);
  const char* ops = "";  ///< what is left beside constants and reshapes
  DType dtype = DType::f32;
};

inline Value input(Graph& g, DType t, Shape shape, const char* name = "x") {
  return g.input(name, {t, std::move(shape)});
}
inline Value rows(Graph& g, DType t, const char* name = "x") { return input(g, t, kRows.shape, name); }
inline Value row(Graph& g, DType t, Shape shape = {8}, const char* name = "w") {
  return g.weight(name, {t, std::move(shape)});
}
inline Value mean(Graph& g, Value x, int64_t axis = -1, bool keep = true) {
  return g.one("mean", {x}, {{"axes", Shape{axis}}, {"keep", int64_t{keep}}});
}
inline Value transposed(Graph& g, Value x, int64_t a = -2, int64_t b = -1) {
  return g.one("transpose", {x}, {{"axis_a", a}, {"axis_b", b}});
}
inline Value part(Graph& g, Value x, int64_t from, int64_t to) {
  return g.one("slice", {x}, {{"axis", int64_t{-1}}, {"start", Shape{from}}, {"stop", Shape{to}}});
}
inline Value joined(Graph& g, Value a, Value b) { return g.one("concat", {a, b}, {{"axis", int64_t{-1}}}); }

inline Value wide(Graph& g, Value x) { return g.cast(x, DType::f32); }

// ---- what is left of a graph

inline std::vector<const Recomposition*> folder() {
  const auto all = compiler::all_recompositions();
  return {all.begin(), all.end()};
}

inline Graph recomposed(const Graph& g, std::vector<const Recomposition*> all = folder()) {
  compiler::Module m{g};
  raise_if(compiler::merge_equal_nodes(m, {}));
  raise_if(compiler::remove_dead_nodes(m, {}));
  raise_if(compiler::recompose(m.graph, all));
  raise_if(compiler::remove_dead_nodes(m, {}));
  raise_if(ir::verify(m.graph));
  return std::move(m.graph);
}

inline std::string ops_of(const Graph& g) {
  std::string ops;
  for (const auto& n : g.nodes) {
    const std::string_view op = n.op->name;
    if (op != "full" && op != "reshape") ops += fmt::format("{}{}", ops.empty() ? "" : " ", op);
  }
  return ops;
}

inline const ir::Node& node_of(const Graph& g, std::string_view op) {
  return *std::ranges::find_if(g.nodes, [&](const ir::Node& n) { return op == n.op->name; });
}

/// Small floats, integers and bits; what is divided by is positive.
inline std::vector<Array> numbers_for(const Graph& g) {
  conformance::Random random(7);
  std::vector<Array> all;
  const auto add = [&](const std::string& name, int32_t value) {
    const TensorType& t = g.types[static_cast<size_t>(value)];
    Array a{t.dtype, {}, {}};
    for (const Dim d : t.shape) a.shape.push_back(d.value());
    for (int64_t i = 0; i < conformance::count(a.shape); ++i) {
      const double drawn = random.normal();
      const double x = is_float(t.dtype) ? (name == "variance" ? 0.5 + std::fabs(drawn) : drawn) : drawn > 0;
      a.v.push_back(conformance::round_to(t.dtype, x));
    }
    all.push_back(std::move(a));
  };
  for (const auto& i : g.inputs) add(i.name, i.value);
  for (const auto& w : g.weights) add(w.name, w.value);
  return all;
}

inline void expect_same_numbers(const Graph& before, const Graph& after) {
  const auto in = numbers_for(before);
  const auto bounds = value_or_raise(conformance::noise_bound(before, in));
  for (const char* backend : {"reference", "native"}) {
    const auto got = value_or_raise(conformance::run_graph(after, in, backend));
    for (size_t k = 0; k < bounds.size(); ++k) {
      const auto verdict = conformance::judge(got[k], bounds[k]);
      EXPECT_TRUE(verdict.ok) << backend << ": " << verdict.reason;
    }
  }
}

inline Graph written(const Written& w) {
  Graph g;
  const Value y = w.write(g, w.dtype);
  raise_if(Status(g.status()));
  g.output("y", y);
  return g;
}

inline void expect_all(std::span<const Written> all) {
  for (const Written& w : all) {
    SCOPED_TRACE(w.how);
    const Graph before = written(w), after = recomposed(before);
    EXPECT_EQ(ops_of(after), w.ops) << ir::print(after);
    expect_same_numbers(before, after);
    auto turned = folder();
    for (size_t i = 0; i < turned.size(); ++i) {  // the order of the folder decides nothing
      std::ranges::rotate(turned, turned.begin() + 1);
      EXPECT_EQ(ops_of(recomposed(before, turned)), w.ops);
    }
    std::ranges::reverse(turned);
    EXPECT_EQ(ops_of(recomposed(before, turned)), w.ops);
  }
}

// Nothing of it becomes an op of the folder: the graph stays as it is.
inline void expect_none(std::span<const Written> all) {
  for (const Written& w : all) {
    const Graph before = written(w), after = recomposed(before);
    EXPECT_EQ(ops_of(after), ops_of(recomposed(before, {}))) << w.how << "\n" << ir::print(after);
  }
}

}  // namespace weft::testing::recompose_rig
