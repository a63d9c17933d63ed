#include <gtest/gtest.h>

#include "ir/graph.h"
#include "small_model.h"

// The graph's text, its verifier, and the required parts of every op definition.
namespace weft::ir::ir_test {
namespace {

Graph step_graph() {
  testing::SmallModel model;
  return *trace(model.function(), testing::SmallModel::inputs()).graph;
}

TEST(IrText, TheStepGraphPrintsParsesAndPrintsTheSame) {
  const Graph g = step_graph();
  const std::string text = print(g);
  const auto again = parse(text);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(print(again.value()), text);
  EXPECT_EQ(again.value().nodes.size(), g.nodes.size());
  EXPECT_EQ(again.value().states.size(), g.states.size());
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    EXPECT_EQ(again.value().nodes[i].op, g.nodes[i].op) << i;
    EXPECT_EQ(again.value().nodes[i].attrs, g.nodes[i].attrs) << g.nodes[i].where;
    EXPECT_EQ(again.value().nodes[i].inputs, g.nodes[i].inputs) << g.nodes[i].where;
  }
  for (const char* line : {"symbol batch 1 64\n", "input tokens %", "state hidden1.weight %", "output loss %",
                           "\"hidden2.matmul\""})
    EXPECT_NE(text.find(line), std::string::npos) << line;
}

TEST(IrText, BadTextsAreRefusedWithTheLineAndTheReason) {
  const std::string x = "input x %0: f32[4]\n";
  std::string halved = "n";
  for (int i = 0; i < 24; ++i) halved += "//2";
  const std::pair<std::string, const char*> table[] = {
      {"input x 0: f32[4]\n", "line 1: wanted a value such as %3"},
      {"input x %0 f32[4]\n", "line 1: wanted ': type' after %0"},
      {"input x %0: f33[4]\n", "unknown dtype 'f33'"},
      {"input x %0: f32 4\n", "wanted '['"},
      {"input x %0: f32[4\n", "missing ']'"},
      {"input x %0: f32[width]\n", "unknown symbol 'width'"},
      {"input x %2000000: f32[4]\n", "value %2000000 is out of range"},
      {"symbol batch one 2\n", "wanted an integer"},
      {"input x %0: f32[4] y\n", "line 1: text after the end of the statement"},
      {"symbol n -1 2\ninput x %0: f32[n]\n", "symbol n is in -1..2"},
      {"symbol n 0 9\ninput x %0: f32[" + std::string(48, '(') + "n" + std::string(48, ')') + "]\n",
       "nested too deeply"},
      {"symbol n 0 9\ninput x %0: f32[" + halved + "]\n", "nested too deeply"},
      {"state s %0: f32[4]\n", "wanted '->' in state s"},
      {x + "%1: f32[4] exp(%0)\n", "line 2: wanted '='"},
      {x + "%1: f32[4] = expp(%0)\n", "no op named 'expp'"},
      {x + "%1: f32[4] = exp %0\n", "wanted '('"},
      {x + "%1: f32[4] = exp(%0\n", "missing ')'"},
      {x + "%1: f32[4] = exp(%0) {colour=3}\n", "colour"},
      {x + "%1: f32[4] = softmax(%0) {axis 3}\n", "wanted '=' after attribute 'axis'"},
      {x + "%1: f32[4] = softmax(%0) {axis=0\n", "missing '}'"},
      {x + "%1: f32[4] = softmax(%0) {axis=zero}\n", "'zero' is no number and no list"},
      {x + "%1: f32[4] = softmax(%0) {axis=\"last\"}\n", "axis"},
      {x + "%1: f32[4] = exp(%0) \"here\" there\n", "text after the end of the statement"},
      {x + "%1: f32[5] = exp(%0)\n", "the shape rule says f32[4]"},
      {"input x %0: f32[2147483648]\n%1: i32[] = argmax(%0)\n", "positions are i32"},
      {"input x %0: f32[2147483648]\n%1: f32[1], %2: i32[1] = topk(%0) {k=1}\n", "positions are i32"},
      {x + "%1: f32[4] = exp(%2)\n", "value %2 is used before it is defined"},
      {x + "%1: f32[4] = exp()\n", "exp"},
      {x + "%1: f32[4] = exp(%0, %0)\n", "exp"},
      {x + "%1: f32[4] = exp(_)\n", "exp"},
      {x + "%0: f32[4] = exp(%0)\n", "value %0 is defined twice"},
      {x + "%1: f32[4], %2: f32[4] = exp(%0)\n", "result 1 is f32[4], but the shape rule says nothing"},
      {x + "output y %1\n", "output y: value %1 is used before it is defined"},
      {x + "input x %1: f32[4]\nstate s %2: f32[4] -> %9\n", "state s: value %9"},
      {"state s %0: f32[4] -> %0\nstate s %1: f32[4] -> %1\n", "two states are named s"},
      {x + "state s %1: f32[5] -> %0\n", "state s begins as f32[5] and ends as f32[4]"},
  };
  for (const auto& [text, words] : table) {
    const auto g = parse(text);
    ASSERT_FALSE(g.ok()) << text;
    EXPECT_NE(g.status().message().find(words), std::string::npos) << text << g.status().message();
  }
}

TEST(IrText, EveryLineCutShortIsRefusedOrWhole) {
  // No prefix of a good text may crash the parser; what it takes must print again.
  const std::string text = print(step_graph()).substr(0, 6000);
  for (size_t n = 0; n < text.size(); n += 7) {
    const auto g = parse(std::string_view(text).substr(0, n));
    if (!g.ok()) continue;
    EXPECT_TRUE(parse(print(g.value())).ok()) << n;
  }
}

/// A small good graph: y = exp(x), s <- s + x.
Graph good() {
  Graph g;
  const Value x = g.input("x", {DType::f32, {4}}), s = g.state("s", {DType::f32, {4}});
  g.output("y", g.exp(x));
  g.states[0].after = g.add(s, x).id();
  return g;
}

TEST(IrVerifier, MalformedGraphsAreRefused) {
  ASSERT_TRUE(verify(good()).ok());
  const struct {
    const char* what;
    void (*damage)(Graph&);
    const char* words;
  } table[] = {
      {"use before definition", [](Graph& g) { std::swap(g.nodes[0], g.nodes[1]), g.nodes[0].inputs[0] = 2; },
       "used before it is defined"},
      {"negative output", [](Graph& g) { g.outputs[0].value = -1; }, "output y"},
      {"operand beyond the end", [](Graph& g) { g.nodes[0].inputs[0] = 99; }, "value %99"},
      {"result beyond the end", [](Graph& g) { g.nodes[0].outputs[0] = 99; }, "value %99 is out of range"},
      {"result defined twice", [](Graph& g) { g.nodes[1].outputs[0] = g.nodes[0].outputs[0]; },
       "defined twice"},
      {"input defined twice", [](Graph& g) { g.inputs.push_back(g.inputs[0]); }, "defined twice"},
      {"wrong dtype", [](Graph& g) { g.types[2].dtype = DType::f16; }, "the shape rule says f32[4]"},
      {"wrong shape", [](Graph& g) { g.types[2].shape = Shape{5}; }, "the shape rule says f32[4]"},
      {"missing operand", [](Graph& g) { g.nodes[1].inputs[0] = -1; }, "add"},
      {"too few operands", [](Graph& g) { g.nodes[1].inputs.pop_back(); }, "add"},
      {"too few attributes",
       [](Graph& g) {
         Builder& b = g;
         g.output("z", b.sum(g.value(0), 0));
         g.nodes.back().attrs.pop_back();
       },
       "sum"},
      {"too few results", [](Graph& g) { g.nodes[0].outputs.clear(); }, "exp"},
      {"state ends elsewhere", [](Graph& g) { g.states[0].after = 77; }, "state s: value %77"},
      {"state of another type", [](Graph& g) { g.states[0].after = g.input("w", {DType::f32, {5}}).id(); },
       "state s begins as f32[4]"},
  };
  for (const auto& row : table) {
    Graph g = good();
    row.damage(g);
    const Status s = verify(g);
    EXPECT_FALSE(s.ok()) << row.what;
    EXPECT_NE(s.message().find(row.words), std::string::npos) << row.what << ": " << s.message();
  }
}

TEST(IrOps, EachSaysWhatItIs) {
  EXPECT_GE(all_ops().size(), 25u);
  std::string before;
  for (const OpDef* op : all_ops()) {
    EXPECT_LT(before, op->name) << "sorted, or find_op misses";
    before = op->name;
    EXPECT_EQ(find_op(op->name), op);
    const std::string doc = op->doc, line = doc.substr(0, doc.find('\n'));
    EXPECT_GT(line.size(), 10u) << op->name << " has no first line";
    EXPECT_NE(line.find('.'), std::string::npos) << op->name << ": " << line;
    EXPECT_GT(op->n_outputs, 0) << op->name;
    EXPECT_LE(op->n_optional, op->n_inputs) << op->name;
    EXPECT_LE(op->n_public, op->n_outputs) << op->name;
    EXPECT_GE(op->version, 1u);
    for (const auto& u : op->updates) {
      if (u.output < 0) continue;
      EXPECT_LT(u.output, op->n_outputs) << op->name;
      EXPECT_LT(u.input, op->n_inputs) << op->name;
    }
  }
  EXPECT_EQ(find_op("sofmax"), nullptr);
  EXPECT_EQ(find_op(""), nullptr);
  EXPECT_EQ(find_op("zzz"), nullptr);
}

TEST(IrOps, AttributesGoByNameAndBack) {
  for (const OpDef* op : all_ops()) {
    const auto defaults = op->defaults();
    ASSERT_EQ(defaults.size(), op->attrs.size()) << op->name;
    std::vector<Attr> named;
    for (size_t i = 0; i < defaults.size(); ++i) named.push_back({op->attrs[i].name, defaults[i]});
    std::reverse(named.begin(), named.end());
    auto ordered = order_attrs(*op, named);
    ASSERT_TRUE(ordered.ok()) << op->name << ": " << ordered.status().message();
    EXPECT_EQ(ordered.value(), defaults) << op->name;
    const auto none = order_attrs(*op, {});
    ASSERT_TRUE(none.ok()) << op->name;
    EXPECT_EQ(none.value(), defaults) << op->name;
    const Attr unknown[] = {{"colour", int64_t{3}}};
    const auto refused = order_attrs(*op, unknown);
    ASSERT_FALSE(refused.ok()) << op->name << " took an attribute that it does not have";
    EXPECT_NE(refused.status().message().find("colour"), std::string::npos) << refused.status().message();
  }
}

TEST(IrOps, AnAttributeOfTheWrongKindIsRefused) {
  for (const OpDef* op : all_ops())
    for (const auto& spec : op->attrs) {
      const bool text = spec.kind == AttrKind::string || spec.kind == AttrKind::dtype;
      const Attr wrong[] = {{spec.name, text ? AttrValue(int64_t{3}) : AttrValue(std::string("three"))}};
      const auto refused = order_attrs(*op, wrong);
      ASSERT_FALSE(refused.ok()) << op->name << "." << spec.name;
      EXPECT_NE(refused.status().message().find(spec.name), std::string::npos) << refused.status().message();
    }
  const Attr dtype[] = {{"dtype", std::string("f33")}};
  EXPECT_FALSE(order_attrs(*find_op("cast"), dtype).ok()) << "a dtype that does not exist";
}

}  // namespace
}  // namespace weft::ir::ir_test
