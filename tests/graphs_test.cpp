#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <set>

#include "compiler/module.h"
#include "conformance/graphs/fused.h"
#include "conformance/graphs/groups.h"
#include "conformance/graphs/shrink.h"
#include "conformance/run.h"
#include "conformance/seam/wrapped.h"
#include "lab/bisect.h"
#include "lab/shadow.h"
#include "seam/builtin.h"
#include "seam/registry.h"
#include "test_backends.h"
#include "weft/backend/views.hpp"
#include "weft/policy_scope.h"

// Random graphs on every backend, and the tools that find which call of a program is wrong. Faults are
// planted for both.
namespace weft::testing::graphs_test {
namespace {

using conformance::adopt;
using conformance::GraphRun;
using conformance::random_graph;
using conformance::random_graphs;
using conformance::RandomGraphs;
using conformance::Wrapped;

const weft_backend& good(const std::string& name) {
  (void)load_plugin(name);
  return value_or_raise(seam::registry().open(name))->backend();
}

/// WEFT_GRAPHS=10000 runs so many; WEFT_GRAPHS=1@17 the one of seed 17.
RandomGraphs asked_for() {
  RandomGraphs what;
  if (const char* text = std::getenv("WEFT_GRAPHS")) {
    char* end = nullptr;
    what.count = std::strtoll(text, &end, 10);
    if (*end == '@') what.first_seed = std::strtoull(end + 1, nullptr, 10), what.share_of_texts = 1;
  }
  return what;
}

std::string text_of(const GraphRun& run) {
  std::string s =
      fmt::format("{}: {} agreed, {} failed, {} refused\n", run.backend, run.agreed, run.failed, run.refused);
  for (const auto& f : run.failures)
    s += fmt::format(
        "{}\n{}again: WEFT_GRAPHS=1@{} build/release/weft_tests --gtest_filter=Graphs.AgreeEverywhere\n",
        f.reason, f.smallest, f.seed);
  return s;
}

TEST(Graphs, AgreeEverywhere) {
  const auto backends = conformance::computing_backends(WEFT_BINARY_DIR "/plugins");
  for (const auto& run : random_graphs(backends, asked_for())) {
    std::printf("[graphs] %-10s %lld run, %lld refused, %lld left out; %s\n", run.backend.c_str(),
                static_cast<long long>(run.run), static_cast<long long>(run.refused),
                static_cast<long long>(run.left_out), run.refusal.substr(0, 120).c_str());
    EXPECT_TRUE(run.ok()) << text_of(run);
  }
}

// Runs after the first one, with states, moved and repeated operands, and at several sizes of a symbol.
TEST(Graphs, FusedSayWhatUnfusedSay) {
  const RandomGraphs asked = asked_for();
  const std::array<std::string, 2> backends = {"reference", "native"};
  const auto run =
      conformance::fused_graphs(backends, {.first_seed = asked.first_seed, .count = asked.count});
  std::printf(
      "[graphs] %lld graphs, fused and not; %lld could not be measured; %lld ops written out, %lld made ops "
      "again;"
      " %lld with a symbol, at %lld sizes\n",
      static_cast<long long>(run.run), static_cast<long long>(run.refused),
      static_cast<long long>(run.written_out), static_cast<long long>(run.recomposed),
      static_cast<long long>(run.with_symbol), static_cast<long long>(run.sizes));
  std::string failures;
  for (const auto& f : run.failures) failures += f + "\n";
  EXPECT_TRUE(run.ok()) << run.failed << " failed\n" << failures << run.refusal;
  if (asked.count < 300) return;
  EXPECT_GT(run.written_out, asked.count);
  EXPECT_GT(run.recomposed, asked.count / 20);
  EXPECT_GT(run.sizes, asked.count / 3);
  EXPECT_LT(run.refused, asked.count / 50) << run.refusal;
}

/// A pass that takes every 0.5 for 0.50001.
Status another_half(compiler::Module& m, const compiler::Options&) {
  for (auto& node : m.graph.nodes)
    if (std::string_view(node.op->name) == "full")
      if (double& value = std::get<double>(node.attrs[0]); value == 0.5) value = 0.50001;
  return {};
}

TEST(Graphs, AFusionThatChangesANumberIsFound) {
  const std::array<std::string, 1> backends = {"reference"};
  const auto run = conformance::fused_graphs(
      backends, {.count = 60, .planted = {"another_half", another_half}, .progress = nullptr});
  EXPECT_GT(run.failed, 0) << "of " << run.run;
  // By its first run, or by one of another size.
  for (const auto& f : run.failures) EXPECT_NE(f.find(", fused: reference: run "), std::string::npos) << f;
}

TEST(Graphs, AreMadeOfEveryOpAndTheSameForTheSameSeed) {
  std::set<std::string> ops;
  size_t updates = 0, views = 0, outputs = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const auto c = random_graph(seed);
    const auto printed = ir::print(c.graph);
    raise_if(ir::verify(c.graph));
    if (seed <= 20) {
      EXPECT_EQ(printed, ir::print(random_graph(seed).graph));
      EXPECT_EQ(printed, ir::print(value_or_raise(ir::parse(printed))));
    }
    for (const auto& n : c.graph.nodes) {
      ops.insert(n.op->name);
      updates += !conformance::updates_of(*n.op).empty(), views += std::string_view(n.op->name) == "reshape";
    }
    outputs += c.graph.outputs.size() > 1;
  }
  std::string missing;
  for (const auto* op : ir::all_ops())
    if (!ops.count(op->name)) missing += fmt::format(" {}", op->name);
  EXPECT_EQ(missing, "") << "in 300 graphs";
  EXPECT_GT(updates, 100u);
  EXPECT_GT(views, 100u);
  EXPECT_GT(outputs, 100u);
}

// ---- planted faults ----

/// Every value counts as dead one step too early, so a result may get its memory. Floats only: a corrupted
/// index could read anywhere.
void end_lifetimes_early(link::Schedule& plan) {
  for (auto& slot : plan.slots)
    if (is_float(slot.type.dtype) && slot.last_step > slot.first_step) --slot.last_step;
  plan.arenas = link::plan_memory(plan.slots, plan.devices);
}

TEST(Graphs, APlantedAliasIsFoundAndShrunkToFourNodesAtMost) {
  const auto run = random_graphs(
      "reference", {.count = 60, .most_findings = 2, .spoil = end_lifetimes_early, .progress = nullptr});
  EXPECT_FALSE(run.ok());
  ASSERT_FALSE(run.failures.empty()) << run.agreed << " graphs agreed";
  for (const auto& f : run.failures) {
    EXPECT_LE(f.nodes, 4u) << f.reason << "\n" << f.smallest;
    const auto again = ir::parse(f.smallest);
    ASSERT_TRUE(again.ok()) << again.status().text();
    EXPECT_EQ(again.value().nodes.size(), f.nodes);
  }
  std::printf("[graphs] %lld of %lld with the alias failed; the first one, shrunk:\n%s",
              static_cast<long long>(run.failed), static_cast<long long>(run.run),
              run.failures[0].smallest.c_str());
}

/// A good backend with one kernel that is off by an eighth in the first element.
class OneWrongKernel : public Wrapped {
 public:
  OneWrongKernel(std::string name, const weft_backend& inner, std::string kernel)
      : Wrapped(std::move(name), inner), kernel_(std::move(kernel)) {}
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const weft_code code = Wrapped::launch(l, e);
    const backend::TensorView out(l->outputs[0]);
    if (std::strchr(l->plan->kernel->id, '.') + 1 == kernel_ && out.dtype() == DType::f32 && out.size() > 0)
      out.data<float>()[0] += 0.125f;
    return code;
  }

 private:
  std::string kernel_;
};

/// A backend of this name, with a fault in the kernel of that id (without its provider).
void adopt_wrong(const std::string& name, const weft_backend& inner, const std::string& kernel) {
  if (!is_backend_available(name)) adopt(*new OneWrongKernel(name, inner, kernel));  // lives to the end
}

TEST(Graphs, AWrongKernelIsFoundAndShrunkToItsNode) {
  WEFT_NEEDS_PLUGIN("template");
  adopt_wrong("graphs_wrong_add", good("template"), "add.flat");
  const auto run = random_graphs("graphs_wrong_add", {.count = 60, .most_findings = 1});
  ASSERT_EQ(run.failures.size(), 1u);
  EXPECT_LE(run.failures[0].nodes, 2u) << run.failures[0].smallest;
  EXPECT_NE(run.failures[0].reason.find(": element "), std::string::npos) << run.failures[0].reason;
}

/// Refuses everything.
class RefusesAll : public Wrapped {
 public:
  using Wrapped::Wrapped;
  bool offers(const weft_kernel&) override { return false; }
};

TEST(Graphs, NoGraphThatRanIsAFailure) {
  if (!is_backend_available("graphs_refuses_all"))
    adopt(*new RefusesAll("graphs_refuses_all", good("reference")));
  const auto run = random_graphs("graphs_refuses_all", {.count = 4});
  EXPECT_EQ(run.refused, 4);
  EXPECT_EQ(run.run, 0);
  EXPECT_FALSE(run.ok());
}

// ---- groups ----

// `reaches_its_kernels` has kernels of groups run by these graphs; a GPU's are not here, but the graphs are.
TEST(Groups, GraphsBecomeTheCallsTheyAreNamedAfter) {
  for (const char* group :
       {"linear_add", "linear_gelu", "matmul_gelu_grad", "add_rms_norm", "add_layer_norm"})
    for (const DType t : {DType::f32, DType::bf16}) {
      const auto c = value_or_raise(conformance::group_case(group, t, {20, 24, 40}, true));
      const auto program = value_or_raise(conformance::compile_graph_case(c));
      ASSERT_EQ(program->calls.size(), 1u) << group;
      EXPECT_EQ(program->calls[0].op, group);
      for (const char* backend : {"reference", "native"}) {
        const auto v = conformance::run_compiled_case(c, program, backend);
        EXPECT_EQ(v.kind, conformance::GraphVerdict::Kind::agreed) << group << ": " << v.reason;
      }
    }
}

TEST(Groups, AreReachedByTheirKernelAloneAndJudged) {
  auto& native = *value_or_raise(seam::registry().open("native"));
  const auto& norm = *seam::registry().find_kernel(native, "native.add_rms_norm.rows");
  auto c = value_or_raise(conformance::group_case("add_rms_norm", DType::f32, {5, 7, 9}, true));
  EXPECT_TRUE(value_or_raise(conformance::group_reaches(c, native, norm)));
  EXPECT_EQ(conformance::run_group_case(c, "native", norm).kind, conformance::GraphVerdict::Kind::agreed);
  const auto other = value_or_raise(conformance::group_case("add_layer_norm", DType::f32, {5, 7, 9}, false));
  EXPECT_FALSE(value_or_raise(conformance::group_reaches(other, native, norm)));
  c.values[0][static_cast<size_t>(c.graph.outputs[1].value)].value.v[3] += 1;
  EXPECT_EQ(conformance::run_group_case(c, "native", norm).kind, conformance::GraphVerdict::Kind::failed);
  EXPECT_FALSE(conformance::group_case("add_softmax_of_nobody", DType::f32, {5, 7, 9}, true).ok());
}

// ---- which call of a program ----

/// Two layers: matmul, a region of mul and tanh, matmul, softmax, add.
program::CompiledProgram two_layers(bool fuse) {
  ir::Graph g;
  const auto x = g.input("x", {DType::f32, {Dim::symbol("batch", 1, 64), Dim(6)}});
  const auto a = g.weight("a", {DType::f32, {6, 8}}), b = g.weight("b", {DType::f32, {8, 5}});
  const auto hidden = g.tanh(g.mul(g.matmul(x, a), 0.5));
  const auto scores = g.matmul(hidden, b);
  g.output("y", g.add(g.one("softmax", {scores}), scores));
  const auto weights = [](const std::string& name) -> Result<program::Blob> {
    const size_t n = name == "a" ? 48 : 40;
    std::vector<float> values;
    for (size_t i = 0; i < n; ++i) values.push_back(static_cast<float>(i * 37 % 23) / 23 - 0.5f);
    return program::Blob::copy_of(values.data(), n * sizeof(float));
  };
  return value_or_raise(compiler::compile(g, weights, {.name = "two_layers", .fuse = fuse}));
}
std::vector<runtime::HostTensor> three_rows() {
  std::vector<float> x;
  for (int i = 0; i < 18; ++i) x.push_back(static_cast<float>(i * 5 % 7) / 3 - 1);
  runtime::HostTensor t{{DType::f32, {3, 6}}, std::vector<std::byte>(sizeof(float) * 18)};
  std::memcpy(t.bytes.data(), x.data(), t.bytes.size());
  return {t};
}
size_t call_of(const program::CompiledProgram& p, std::string_view op) {
  for (size_t i = 0; i < p.calls.size(); ++i)
    if (p.calls[i].op == op) return i;
  return p.calls.size();
}

TEST(Shadow, NamesTheFirstCallOutsideItsBound) {
  WEFT_NEEDS_PLUGIN("template");
  adopt_wrong("graphs_wrong_add", good("template"), "add.flat");
  const auto p = two_layers(true);
  const auto inputs = three_rows();
  const auto on = [&](const std::string& backend) {
    return value_or_raise(lab::shadow(p, inputs, {.backend = backend}, "reference", {}, {}));
  };
  const auto good = on("template");
  EXPECT_TRUE(good.ok()) << good.first->what << good.first->result;
  EXPECT_EQ(good.calls, p.calls.size());
  const auto wrong = on("graphs_wrong_add");
  ASSERT_TRUE(wrong.first);
  EXPECT_EQ(wrong.first->call, call_of(p, "add"));
  EXPECT_EQ(wrong.first->kernels, std::vector<std::string>{"graphs_wrong_add.add.flat"});
  EXPECT_NE(wrong.first->what.find("add"), std::string::npos) << wrong.first->what;
  EXPECT_EQ(wrong.first->result.rfind("result 0: element 0 of f32[3, 5]: got ", 0), 0u)
      << wrong.first->result;
  EXPECT_EQ(wrong.first->oracle, "the oracle is within the bound");
}

TEST(Shadow, SeesWhatNoCallAloneDoes) {
  const auto p = two_layers(true);
  auto session =
      value_or_raise(runtime::Session::create(std::make_shared<const program::CompiledProgram>(p),
                                              {value_or_raise(seam::registry().open("reference"))}, {}));
  auto out = value_or_raise(session->run(three_rows()));
  const auto judged = [&] {
    return value_or_raise(lab::shadow(p, three_rows(), {.backend = "reference"}, "reference", {}, out));
  };
  EXPECT_TRUE(judged().ok()) << judged().whole;
  reinterpret_cast<float*>(out[0].bytes.data())[2] += 1;
  EXPECT_FALSE(judged().ok());
  EXPECT_EQ(judged().whole.rfind("output y: element 2: ", 0), 0u) << judged().whole;
}

/// x times the column numbers: a call without operands, whose results are constants of the program.
program::CompiledProgram numbered_columns() {
  ir::Graph g;
  const auto x = g.input("x", {DType::f32, {Dim::symbol("batch", 1, 64), Dim(6)}});
  g.output("y", g.mul(x, g.one("iota", {}, {{"size", Shape{6}}, {"dtype", std::string("f32")}})));
  const auto none = [](const std::string& name) -> Result<program::Blob> { return invalid("{}", name); };
  return value_or_raise(compiler::compile(g, none, {.name = "numbered_columns"}));
}

lab::Bisection bisected(const program::CompiledProgram& p, const std::string& a, const std::string& b,
                        bool same_bits = false) {
  return value_or_raise(lab::bisect(p, three_rows(), value_or_raise(lab::parse_config(a)),
                                    value_or_raise(lab::parse_config(b)), {}, same_bits));
}

TEST(Bisect, NamesTheBackendsChoiceAndTheKernel) {
  WEFT_NEEDS_PLUGIN("template");
  adopt_wrong("graphs_wrong_add", good("template"), "add.flat");
  const auto p = two_layers(true);
  EXPECT_TRUE(bisected(p, "template", "reference").b_right);
  for (const bool swapped : {false, true}) {
    const auto backend =
        swapped ? bisected(p, "graphs_wrong_add", "reference") : bisected(p, "reference", "graphs_wrong_add");
    EXPECT_NE(backend.a_right, backend.b_right) << backend.a_reason << backend.b_reason;
    ASSERT_TRUE(backend.culprit);
    EXPECT_EQ(backend.culprit->call, call_of(p, "add"));
    EXPECT_EQ(backend.culprit->kind, "backend");
    EXPECT_EQ(swapped ? backend.culprit->b_verdict : backend.culprit->a_verdict, "within its bound");
    EXPECT_LE(backend.trials, 6u);
  }
  const auto kernel = bisected(p, "graphs_wrong_add", "graphs_wrong_add,-graphs_wrong_add.add.flat");
  ASSERT_TRUE(kernel.culprit) << kernel.a_reason << kernel.b_reason;
  EXPECT_EQ(kernel.culprit->call, call_of(p, "add"));
  EXPECT_EQ(kernel.culprit->kind, "kernel");
  EXPECT_EQ(kernel.culprit->a_kernels, std::vector<std::string>{"graphs_wrong_add.add.flat"});
  EXPECT_NE(kernel.culprit->b_kernels, kernel.culprit->a_kernels);
}

TEST(Bisect, NamesTheKernelOfACallWithoutOperands) {
  adopt_wrong("graphs_wrong_iota", good("reference"), "iota.shared");
  const auto p = numbered_columns();
  const auto found = bisected(p, "reference", "graphs_wrong_iota");
  ASSERT_TRUE(found.culprit) << found.a_reason << found.b_reason;
  EXPECT_EQ(found.culprit->call, call_of(p, "iota"));
  EXPECT_EQ(found.culprit->b_kernels, std::vector<std::string>{"graphs_wrong_iota.iota.shared"});
}

/// The table of a backend that is built in; null where it is not.
const weft_backend* builtin_table(std::string_view name) {
  const weft_backend* table = nullptr;
  weft_error error{.size = sizeof error, .text = {}};
  for (const auto& b : seam::builtin_backends())
    if (b.name == name) (void)b.negotiate(&seam::host(), &table, &error);
  return table;
}

TEST(Bisect, NamesAFusion) {
  const auto* native = builtin_table("native");
  if (!native) GTEST_SKIP() << "native is not built in";
  const auto p = two_layers(true);
  const auto good = bisected(p, "native", "native,unfused", true);
  EXPECT_TRUE(good.a_right && good.b_right) << good.b_reason;

  const size_t region = call_of(p, "matmul_elementwise");
  ASSERT_LT(region, p.calls.size()) << program::print(p);
  auto values =
      value_or_raise(lab::first_values(value_or_raise(lab::without_symbols(p, three_rows())), three_rows()));
  const auto concrete = value_or_raise(lab::without_symbols(p, three_rows()));
  for (size_t i = 0; i < region; ++i)
    lab::keep(concrete, i, value_or_raise(lab::run_call(concrete, i, {.backend = "native"}, {}, values)),
              values);
  const auto kernels =
      value_or_raise(lab::run_call(concrete, region, {.backend = "native"}, {}, values)).kernels;
  ASSERT_EQ(kernels.size(), 2u) << "native runs the product, and what follows it as one: " << kernels[0];
  adopt_wrong("graphs_wrong_fusion", *native, kernels[1].substr(kernels[1].find('.') + 1));
  const auto wrong = bisected(p, "graphs_wrong_fusion", "graphs_wrong_fusion,unfused");
  ASSERT_TRUE(wrong.culprit) << wrong.a_reason << wrong.b_reason;
  EXPECT_EQ(wrong.culprit->call, region);
  EXPECT_EQ(wrong.culprit->kind, "fusion");
  EXPECT_NE(wrong.culprit->what.find("mul tanh"), std::string::npos) << wrong.culprit->what;
}

// Seed 21 has a size that no input has: cutting it gives the same graph back.
TEST(RandomGraphs, ShrinkingEnds) {
  const auto small = conformance::shrunk(random_graph(21), [](const auto&) { return true; });
  EXPECT_EQ(small.graph.nodes.size(), 1u);
}

TEST(Bisect, RefusesWhatIsNoConfiguration) {
  EXPECT_EQ(error_of([] { (void)value_or_raise(lab::parse_config("native,fused")); }),
            "invalid argument: a configuration is BACKEND[,BACKEND]...[,unfused][,-KERNEL]..., got 'fused' "
            "in 'native,fused'");
  const auto c = value_or_raise(lab::parse_config("native,unfused,-native.matmul.packed"));
  EXPECT_FALSE(c.fuse);
  EXPECT_TRUE(lab::check_kernels(c).ok());
  EXPECT_EQ(lab::check_kernels({.backend = "native", .without = {"native.matmull.packed"}}).message(),
            "there is no kernel native.matmull.packed to leave out of 'native,-native.matmull.packed'; `weft "
            "run FILE --ledger` names those that ran");
  const lab::Config anothers{.backend = "native", .without = {"openmp.matmul.packed"}};
  EXPECT_FALSE(lab::check_kernels(anothers).ok()) << "nothing would be left out";
  const PolicyScope allow({.fallback = Fallback::allow});
  EXPECT_TRUE(lab::check_kernels(anothers).ok());
  EXPECT_EQ(lab::text(c), "native,unfused,-native.matmul.packed");
}

}  // namespace
}  // namespace weft::testing::graphs_test
