#include <gtest/gtest.h>

#include "compiler/module.h"
#include "conformance/noise.h"
#include "link/schedule.h"
#include "recompose_rig.h"
#include "seam/registry.h"
#include "test_backends.h"
#include "weft/nn.h"
#include "weft/ops.h"
#include "weft/trace.h"

// The loss of a language model: with its gradient in one op, and on some rows at a time.
namespace weft::testing::losses_test {
namespace {

using recompose_rig::ops_of;

struct Sizes {
  int64_t batch = 5, context = 128, width = 8, classes = 24;
  int64_t scores() const { return batch * context * classes; }
};
using Loss = std::function<Tensor(const Tensor& scores, const Tensor& targets)>;

/// The scores of x [batch, context, width] by a weight, and what their loss says of both. With `gradient`,
/// the loss is halved before, as that of one of two parts of a batch.
ir::Graph head(DType dtype, const Loss& loss, bool gradient = true, const Sizes& s = {}) {
  const auto function = [&](const std::vector<Tensor>& in) {
    Tensor x = in[0].detach(), weight = in[1].detach();
    x.requires_grad(gradient), weight.requires_grad(gradient);
    const Tensor y = loss(linear(x * 0.25, weight), in[2]);  // a row's choice is not all but made
    if (!gradient) return std::vector<Tensor>{y};
    (y / 2.0).backward();
    return std::vector<Tensor>{y.detach(), x.grad(), weight.grad()};
  };
  return *trace(function, {{"x", {dtype, {s.batch, s.context, s.width}}},
                           {"weight", {dtype, {s.classes, s.width}}},
                           {"targets", {DType::i32, {s.batch, s.context}}}})
              .graph;
}
Tensor rows_of(const Tensor& scores) {
  return reshape(scores, {element_count(scores.shape()).value() / scores.dim(-1).value(), scores.dim(-1)});
}
/// Targets of this rig are 0 and 1, and 1 does not count.
Tensor mean_loss(const Tensor& scores, const Tensor& targets) {
  return cross_entropy(rows_of(scores), reshape(targets, {-1}), Tensor(), 1, 0.1, true);
}
Tensor summed_loss(const Tensor& scores, const Tensor& targets) {
  return cross_entropy(rows_of(scores), reshape(targets, {-1}), Tensor(), 1, 0, true, true);
}

ir::Graph passed(const ir::Graph& g, uint64_t most_scores) {
  compiler::Module m{g};
  const compiler::Options options{.most_scores = most_scores};
  raise_if(compiler::merge_equal_nodes(m, options));
  raise_if(compiler::remove_dead_nodes(m, options));
  raise_if(compiler::join_losses_with_gradients(m, options));
  raise_if(compiler::compute_losses_by_rows(m, options));
  raise_if(compiler::remove_dead_nodes(m, options));
  raise_if(ir::verify(m.graph));
  return std::move(m.graph);
}
int64_t count(const ir::Graph& g, std::string_view op) {
  return std::ranges::count_if(g.nodes, [&](const ir::Node& n) { return op == n.op->name; });
}
int64_t largest(const ir::Graph& g) {
  int64_t most = 0;
  for (const ir::Node& n : g.nodes)
    for (const int32_t id : n.outputs)
      most = std::max(most, element_count(g.types[static_cast<size_t>(id)].shape).max());
  return most;
}

TEST(Losses, AreOneOpWithTheirGradient) {
  for (const DType t : {DType::f64, DType::f32, DType::bf16}) {
    const ir::Graph before = head(t, mean_loss), after = passed(before, UINT64_MAX);
    EXPECT_EQ(count(after, "cross_entropy_with_grad"), 1) << ir::print(after);
    EXPECT_EQ(count(after, "cross_entropy") + count(after, "cross_entropy_grad"), 0);
    recompose_rig::expect_same_numbers(before, after);
  }
}

// The gradient of x has the bits of the whole; the loss and the gradient of the weight are added in parts.
void expect_right_parts(const ir::Graph& before, const ir::Graph& after) {
  const auto in = recompose_rig::numbers_for(before);
  const auto bounds = value_or_raise(conformance::noise_bound(before, in));
  const auto whole = value_or_raise(conformance::run_graph(before, in, "reference"));
  const auto parts = value_or_raise(conformance::run_graph(after, in, "reference"));
  EXPECT_EQ(parts[1].v, whole[1].v);
  for (const size_t k : {0, 2}) {
    const auto verdict = conformance::judge(parts[k], bounds[k]);
    EXPECT_TRUE(verdict.ok) << verdict.reason;
  }
}

TEST(Losses, RunOnSomeRowsAtATime) {
  constexpr Sizes s;
  for (const DType t : {DType::f64, DType::f32, DType::bf16})
    for (const Loss& loss : {Loss(mean_loss), Loss(summed_loss)}) {
      const ir::Graph before = head(t, loss);
      const auto bytes = static_cast<uint64_t>(s.scores()) * byte_size(t);
      const ir::Graph after = passed(before, bytes / 3);  // 640 rows: 256, 256 and 128
      EXPECT_EQ(count(after, "linear"), 3) << ir::print(after);
      EXPECT_EQ(count(after, "cross_entropy_with_grad"), 3);
      EXPECT_EQ(count(after, "matmul"), 6);
      EXPECT_LE(largest(after), 256 * s.classes) << ir::print(after);
      expect_right_parts(before, after);
      if (t == DType::f32) recompose_rig::expect_same_numbers(before, after);
    }
}

TEST(Losses, OfAForwardPassRunOnSomeRowsToo) {
  constexpr Sizes s;
  const ir::Graph before = head(DType::f32, mean_loss, false);
  const ir::Graph after = passed(before, static_cast<uint64_t>(s.scores()));  // a quarter of them
  EXPECT_EQ(count(after, "cross_entropy"), 3) << ir::print(after);
  EXPECT_LE(largest(after), 256 * s.classes);
  recompose_rig::expect_same_numbers(before, after);
}

TEST(Losses, StayAsTheyAreWhereTheScoresAreSeenOrPartsSaveNothing) {
  const auto expect_whole = [](const char* why, const ir::Graph& g) {
    EXPECT_EQ(count(passed(g, 1 << 10), "linear"), 1) << why << "\n" << ir::print(g);
  };
  expect_whole("no f32 loss", head(DType::bf16, [](const Tensor& scores, const Tensor& targets) {
                 return cross_entropy(rows_of(scores), reshape(targets, {-1}));
               }));
  expect_whole("scaled scores", head(DType::f32, [](const Tensor& scores, const Tensor& targets) {
                 return mean_loss(scores * 0.5, targets);
               }));
  expect_whole("another reader", head(DType::f32, [](const Tensor& scores, const Tensor& targets) {
                 return mean_loss(scores, targets) + sum(scores * scores);
               }));
  expect_whole("wide x", head(DType::f32, mean_loss, true, {.width = 700}));
  ir::Graph seen = head(DType::f32, mean_loss);
  seen.output("scores", seen.value(recompose_rig::node_of(seen, "linear").outputs[0]));
  expect_whole("an output", seen);
}

// A gradient that depends on the loss can't be made with it.
TEST(Losses, WaitForAGradientThatReadsThem) {
  const auto function = [](const std::vector<Tensor>& in) {
    Tensor x = in[0].detach();
    x.requires_grad(true);
    const Tensor y = cross_entropy(x, in[1]);
    (y * y).backward();
    return std::vector<Tensor>{x.grad()};
  };
  const ir::Graph before =
      *trace(function, {{"x", {DType::f32, {4, 7}}}, {"targets", {DType::i32, {4}}}}).graph;
  const ir::Graph after = passed(before, UINT64_MAX);
  EXPECT_EQ(count(after, "cross_entropy_with_grad"), 0) << ir::print(after);
  recompose_rig::expect_same_numbers(before, after);
}

uint64_t arena_of(const ir::Graph& g, const char* backend, uint64_t most_scores) {
  const auto program = value_or_raise(compiler::compile(g, {}, {.name = "head", .most_scores = most_scores}));
  seam::Device* devices[] = {value_or_raise(seam::registry().open(backend))};
  const auto plan = value_or_raise(link::link(program, {}, devices, Policy{}));
  const Status checked = link::check_dependencies(plan);
  EXPECT_TRUE(checked.ok()) << checked.text() << "\n" << link::print(plan);
  return plan.arenas[0].bytes;
}
void expect_less_memory(const char* backend, DType dtype) {
  const auto loss = [](const Tensor& scores, const Tensor& targets) {
    return nn::token_loss(scores, targets);
  };
  const ir::Graph g = head(dtype, loss, true, {32, 1024, 768, 50304});
  const uint64_t whole = arena_of(g, backend, UINT64_MAX), parts = arena_of(g, backend, uint64_t{1} << 30);
  std::printf("[arena] last layer of GPT-2, 32 x 1024 tokens, %s on %s: %.2f GB, by rows %.2f GB\n",
              name(dtype), backend, 1e-9 * static_cast<double>(whole), 1e-9 * static_cast<double>(parts));
  EXPECT_LT(parts, whole / 2);
}

// Nothing is run; both devices run steps beside others. On `far` every op is one of small ops.
TEST(Losses, NeedLessMemoryByRows) {
  WEFT_NEEDS_PLUGIN("far");
  expect_less_memory("far", DType::f32);
}
TEST(Losses, NeedLessMemoryByRowsOnAGpu) {
  WEFT_NEEDS_PLUGIN("emulated");
  expect_less_memory("emulated", DType::bf16);
}

}  // namespace
}  // namespace weft::testing::losses_test
