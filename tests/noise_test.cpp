#include <gtest/gtest.h>

#include "conformance/inputs.h"
#include "conformance/noise.h"
#include "conformance/run.h"

// The noise bound of graphs.
namespace weft::conformance::noise_test {
namespace {

// y = x / sqrt(mean(x^2) + epsilon) * w, as an rms norm is before anything is fused.
ir::Graph rms_norm(DType t, double epsilon) {
  ir::Graph g;
  const auto x = g.input("x", {t, {6, 64}}), w = g.weight("w", {t, {64}});
  const auto mean = g.div(g.sum(g.mul(x, x), 1), g.full(64, {}, t));
  g.output("y", g.mul(g.div(x, g.sqrt(g.add(mean, epsilon))), w));
  return g;
}

// Two layers and a loss: what a deviation in an early layer does to the end.
ir::Graph perceptron(DType t) {
  ir::Graph g;
  const auto x = g.input("x", {t, {5, 16}}), target = g.input("target", {DType::i64, {5}});
  const auto a = g.weight("a", {t, {16, 32}}), b = g.weight("b", {t, {32, 7}});
  const auto hidden = g.one("relu", {g.matmul(x, a)});
  const auto logits = g.matmul(hidden, b);
  g.output("probabilities", g.one("softmax", {logits}));
  g.output("loss", g.one("cross_entropy", {logits, target}));
  return g;
}

std::vector<Array> rms_inputs(DType t) {
  return make_inputs({.inputs = {uniform({6, 64}, -0.05, 0.05), normal({64})}}, t, 5);
}
std::vector<Array> perceptron_inputs(DType t) {
  return make_inputs({.inputs = {normal({5, 16}), values({0, 6, 3, 3, 1}).as(DType::i64), normal({16, 32}),
                                 normal({32, 7})}},
                     t, 6);
}

void expect_right(const ir::Graph& g, const std::vector<Array>& inputs, const std::string& backend) {
  const auto bound = value_or_raise(noise_bound(g, inputs));
  auto got = run_graph(g, inputs, backend);
  if (!got.ok()) {
    EXPECT_EQ(got.status().code(), Code::unsupported) << got.status().text();
    std::printf("[noise] refused: %s\n", got.status().message().substr(0, 100).c_str());
    return;
  }
  for (size_t k = 0; k < bound.size(); ++k) {
    const Verdict v = judge(got.value()[k], bound[k]);
    EXPECT_TRUE(v.ok) << backend << ", output " << k << ": " << v.reason;
  }
}

TEST(Noise, RightGraphsPassEverywhere) {
  for (const auto& backend : computing_backends(WEFT_BINARY_DIR "/plugins"))
    for (const DType t : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      SCOPED_TRACE(fmt::format("{} on {}", name(t), backend));
      expect_right(rms_norm(t, 1e-5), rms_inputs(t), backend);
      expect_right(perceptron(t), perceptron_inputs(t), backend);
    }
}

TEST(Noise, AChangedEpsilonFails) {
  const auto inputs = rms_inputs(DType::f64);
  const auto bound = value_or_raise(noise_bound(rms_norm(DType::f64, 1e-5), inputs));
  const auto changed = value_or_raise(run_graph(rms_norm(DType::f64, 1e-6), inputs, "reference"));
  const Verdict v = judge(changed[0], bound[0]);
  EXPECT_FALSE(v.ok) << "1e-6 instead of 1e-5 went unseen";
  EXPECT_GT(v.worst, 1e6) << "it should be seen by far";
}

TEST(Noise, IsTheSameForTheSameSeedAndTightensWithTheDtype) {
  const auto inputs = perceptron_inputs(DType::bf16);
  const auto at = [&](DType t, uint64_t seed) {
    return value_or_raise(noise_bound(perceptron(t), inputs, seed))[1].error[0];
  };
  EXPECT_EQ(at(DType::f32, 3), at(DType::f32, 3));
  EXPECT_LT(at(DType::f64, 3) * 1e6, at(DType::f32, 3));
  EXPECT_LT(at(DType::f32, 3) * 1e2, at(DType::bf16, 3));
}

}  // namespace
}  // namespace weft::conformance::noise_test
