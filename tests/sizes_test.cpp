#include <gtest/gtest.h>

#include <random>

#include "compiler/compile.h"
#include "runtime/session.h"
#include "seam/registry.h"
#include "small_model.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ops.h"
#include "weft/trace.h"

// Programs of many sizes: linked for powers of two, and run for each size as if it were the only one.
namespace weft::testing {
namespace {

using runtime::HostTensor;

constexpr int64_t kWidth = 8, kMost = 2048;

/// A layer over a prompt: two products of its tokens with a weight, one of all tokens with all.
std::vector<Tensor> prompt_layer(const std::vector<Tensor>& in) {
  const Tensor h = relu(matmul(in[0], in[1]));
  const Tensor scores = softmax(matmul(h, in[0], false, true), 1);
  return {matmul(scores, h) + in[0]};
}

std::unique_ptr<runtime::Session> session_on(const std::string& backend) {
  const Dim tokens = Dim::symbol("tokens", 1, kMost);
  const Traced traced = trace(prompt_layer, {{"x", {DType::f32, {tokens, Dim(kWidth)}}},
                                             {"w", {DType::f32, {Dim(kWidth), Dim(kWidth)}}}});
  auto program = value_or_raise(compiler::compile(
      *traced.graph, [](const std::string& name) -> Result<program::Blob> { return invalid("{}", name); },
      {.name = "prompt"}));
  return value_or_raise(
      runtime::Session::create(std::make_shared<const program::CompiledProgram>(std::move(program)),
                               {value_or_raise(seam::registry().open(backend))}, Policy{}));
}

HostTensor noise(int64_t rows, uint64_t seed) {
  const auto values = SmallModel::noise(static_cast<size_t>(rows * kWidth), seed);
  HostTensor t{{DType::f32, {rows, kWidth}}, std::vector<std::byte>(values.size() * sizeof(float))};
  for (size_t i = 0; i < values.size(); ++i) {
    const auto v = static_cast<float>(values[i]);
    std::memcpy(t.bytes.data() + i * sizeof v, &v, sizeof v);
  }
  return t;
}

/// Multiply-adds of the products of a call or its body, as its kernel is given them.
int64_t multiply_adds(const seam::CallDesc& call) {
  int64_t n = 0;
  if (call.region)
    for (const auto& step : call.region->steps) n += multiply_adds(step.call);
  if (call.op != "matmul") return n;
  n = call.inputs[0]->shape.back();
  for (const int64_t d : call.outputs[0].shape) n *= d;
  return n;
}
int64_t multiply_adds(const link::Schedule& plan) {
  int64_t n = 0;
  for (const auto& step : plan.steps)
    if (step.prepared) n += multiply_adds(step.prepared->call->desc());
  return n;
}

// Each size is run twice: launched, and where the device can, recorded.
void run_all_sizes(const std::string& backend, const std::vector<int64_t>& sizes) {
  SCOPED_TRACE(backend);
  auto session = session_on(backend), oracle = session_on("reference");
  const HostTensor w = noise(kWidth, 1);
  for (const int64_t n : sizes) {
    const std::vector<HostTensor> in = {noise(n, static_cast<uint64_t>(n)), w};
    const auto first = value_or_raise(session->run(in)), again = value_or_raise(session->run(in));
    EXPECT_EQ(multiply_adds(session->schedule()), n * kWidth * kWidth + 2 * n * n * kWidth) << n << " tokens";
    ASSERT_EQ(first[0].type.shape, (IntList{n, kWidth}));
    EXPECT_EQ(first[0].bytes, again[0].bytes) << n << " tokens";
    if (n > 300) continue;  // the oracle takes its time
    const auto want = value_or_raise(oracle->run(in));
    for (size_t i = 0; i < want[0].bytes.size(); i += sizeof(float)) {
      float a, b;
      std::memcpy(&a, first[0].bytes.data() + i, sizeof a),
          std::memcpy(&b, want[0].bytes.data() + i, sizeof b);
      ASSERT_NEAR(a, b, 2e-5) << n << " tokens, element " << i / sizeof(float);
    }
  }
  EXPECT_LE(session->links(), 12u);
}

TEST(Sizes, PromptsOf1To2048TokensLinkAtMost12Times) {
  std::vector<int64_t> sizes = {kMost, 1};  // the largest first, and last
  for (int64_t n = 2; n <= kMost; n *= 2) sizes.insert(sizes.end(), {n - 1, n, std::min(n + 1, kMost)});
  std::mt19937 random(3);
  for (int i = 0; i < 40; ++i) sizes.push_back(1 + static_cast<int64_t>(random() % kMost));
  sizes.push_back(kMost);
  run_all_sizes("native", sizes);
}

TEST(Sizes, SmallerOnesRunInTheMemoryOfLargerOnes) {
  WEFT_NEEDS_PLUGIN("far");
  run_all_sizes("far", {5, 3, 8, 1, 17, 33, 40, 2, 5, 64, 63});
  if (is_backend_available("opencl")) run_all_sizes("opencl", {5, 3, 8, 1, 17, 33, 40, 2, 5, 64, 63});
}

}  // namespace
}  // namespace weft::testing
