#include <gtest/gtest.h>

#include "compiler/module.h"
#include "lab/passes.h"
#include "weft/ops.h"
#include "weft/trace.h"

// What is seen of the compiler's passes, and the check that names the one that changed a number.
namespace weft::testing::passes_test {
namespace {

using compiler::Module;
using compiler::Pass;

/// A norm, a product, a chain and a state that counts.
Traced small_graph(DType dtype) {
  const Tensor weight = full(0.75, {8, 8}, dtype), gain = full(1.5, {8}, dtype);
  Tensor runs = full(0, {3}, dtype);
  return trace(
      [&](const std::vector<Tensor>& in) {
        assign(runs, runs + 1.0);
        const Tensor normed = rms_norm(in[0], gain);
        return std::vector<Tensor>{(exp(matmul(normed, weight) * 0.125) - normed).named("y")};
      },
      {{"x", {dtype, {Dim::symbol("passes_rows", 2, 9), 8}}}});
}

Result<program::Blob> bytes_of(const Traced& traced, const std::string& name) {
  const auto find = [&](const auto& named, const auto& tensors) {
    for (size_t i = 0; i < named.size(); ++i)
      if (named[i].name == name) return std::optional(tensors[i]);
    return std::optional<Tensor>();
  };
  auto at = find(traced.graph->weights, traced.weights);
  if (!at) at = find(traced.graph->states, traced.states);
  const auto bytes = at.value().to_bytes();
  return program::Blob::copy_of(bytes.data(), bytes.size());
}

/// Elements of a small row-mean, where an epsilon shows.
Result<std::vector<runtime::HostTensor>> small_numbers(const program::CompiledProgram& p) {
  runtime::HostTensor t{{p.values[static_cast<size_t>(p.inputs[0].value)].type.dtype, {3, 8}}, {}};
  const bool wide = t.type.dtype == DType::f64;
  for (int i = 0; i < 24; ++i) {
    const double x = 0.01 * ((i * 7) % 24 - 11);
    const auto f = static_cast<float>(x);
    const auto* bytes =
        wide ? reinterpret_cast<const std::byte*>(&x) : reinterpret_cast<const std::byte*>(&f);
    t.bytes.insert(t.bytes.end(), bytes, bytes + (wide ? 8 : 4));
  }
  return std::vector{t};
}

std::vector<lab::JudgedStage> judged(std::span<const Pass> passes, DType dtype = DType::f64) {
  const Traced traced = small_graph(dtype);
  lab::PassCheck check(small_numbers);
  const compiler::Watch watch([&](const compiler::Stage& stage) { return check.see(stage); });
  const auto source = [&](const std::string& name) { return bytes_of(traced, name); };
  const auto p = compiler::compile(*traced.graph, source, {}, passes);
  EXPECT_TRUE(p.ok()) << p.status().text();
  return check.stages();
}

/// The pipeline with a pass more, after `before` of its own.
std::vector<Pass> with(Pass planted, size_t before) {
  std::vector<Pass> all(compiler::pipeline().begin(), compiler::pipeline().end());
  all.insert(all.begin() + static_cast<ptrdiff_t>(before), planted);
  return all;
}

ir::Node& node_of(Module& m, std::string_view op) {
  return *std::ranges::find_if(m.graph.nodes, [&](const ir::Node& n) { return n.op->name == op; });
}

// ---- the faults

Status other_epsilon(Module& m, const compiler::Options&) {
  node_of(m, "rms_norm").attrs[0] = 1e-6;  // from 1e-5
  return {};
}
Status other_way_round(Module& m, const compiler::Options&) {
  auto& in = node_of(m, "sub").inputs;
  std::swap(in[0], in[1]);
  return {};
}
Status other_step(Module& m, const compiler::Options&) {
  for (ir::Node& n : m.graph.nodes)  // of the state that counts
    if (n.op->name == std::string_view("full") && n.attrs[0] == AttrValue(1.0)) n.attrs[0] = 1.5;
  return {};
}
Status two_outputs(Module& m, const compiler::Options&) {
  m.graph.outputs.push_back({"again", m.graph.outputs[0].value});
  return {};
}
Status nothing(Module&, const compiler::Options&) { return {}; }

TEST(Passes, TheRealOnesChangeNoNumber) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const auto stages = judged(compiler::pipeline(), dtype);
    ASSERT_EQ(stages.size(), compiler::pipeline().size() + 1);
    EXPECT_EQ(stages[0].after, "");
    for (size_t i = 0; i < stages.size(); ++i) {
      EXPECT_EQ(stages[i].wrong, "") << stages[i].after;
      EXPECT_EQ(stages[i].after, i > 0 ? compiler::pipeline()[i - 1].name : "");
    }
    EXPECT_LT(stages.back().calls, stages[0].calls) << "what is fused";
  }
}

TEST(Passes, AWrongOneIsNamed) {
  const std::pair<Pass, const char*> faults[] = {
      {{"other_epsilon", other_epsilon}, "output y: element"},
      {{"other_way_round", other_way_round}, "output y: element"},
      {{"other_step", other_step}, "state captured0: element"},
      {{"two_outputs", two_outputs}, "3 outputs and states; there were 2"},
  };
  for (const auto& [pass, says] : faults)
    for (size_t before = 0; before <= 3; ++before) {  // later ones refer to nodes by number
      const auto stages = judged(with(pass, before));
      ASSERT_EQ(stages.size(), before + 2) << pass.name << ": nothing runs after it";
      EXPECT_EQ(stages.back().after, pass.name);
      EXPECT_TRUE(stages.back().wrong.starts_with(says)) << stages.back().wrong;
      EXPECT_EQ(stages[before].wrong, "") << "the one before it is right";
    }
  EXPECT_EQ(judged(with({"nothing", nothing}, 2)).back().wrong, "");
}

TEST(Passes, StagesAreShownInOrderToTheInnermost) {
  const Traced traced = small_graph(DType::f32);
  const auto source = [&](const std::string& name) { return bytes_of(traced, name); };
  std::vector<std::string> seen, texts;
  bool outer = false;
  const compiler::Watch other([&](const compiler::Stage&) { return outer = true, Status(); });
  {
    const compiler::Watch watch([&](const compiler::Stage& stage) {
      seen.push_back(stage.after), texts.push_back(stage.text());
      return Status();
    });
    ASSERT_TRUE(compiler::compile(*traced.graph, source).ok());
  }
  EXPECT_FALSE(outer);
  ASSERT_EQ(seen.size(), compiler::pipeline().size() + 1);
  EXPECT_EQ(seen.back(), compiler::pipeline().back().name);
  EXPECT_EQ(texts[0].find("fusion "), std::string::npos);
  EXPECT_NE(texts.back().find("fusion "), std::string::npos) << texts.back();
  EXPECT_NE(texts[0].find("rms_norm("), std::string::npos) << texts[0];

  const compiler::Watch refusing([](const compiler::Stage&) { return invalid("enough"); });
  EXPECT_EQ(compiler::compile(*traced.graph, source).status().message(), "enough");
}

}  // namespace
}  // namespace weft::testing::passes_test
