#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compiler/compile.h"
#include "conformance/seam/wrapped.h"
#include "runtime/session.h"
#include "seam/registry.h"
#include "small_model.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ops.h"
#include "weft/trace.h"

// Programs of many sizes: linked for powers of two, and run for each size as if it were the only one.
namespace weft::testing::sizes_test {
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

// A slice is a view where its offset is aligned, so of some sizes alone.
TEST(Sizes, WhatIsAViewMayDependOnTheSize) {
  const Dim n = Dim::symbol("columns", 1, 64);
  const auto rows = [](const std::vector<Tensor>& in) {
    const Tensor h = in[0] + in[0], second = slice(h, 0, 1, 2);
    const Tensor y = exp(second) + slice(h, 0, 2, 3);
    return std::vector{y * slice(y + h, 0, 1, 2), sum(second, {Dim(1)}, false)};
  };
  for (const auto& backend : testing::backends({"reference", "native", "far", "opencl"})) {
    SCOPED_TRACE(backend);
    auto program = compile(rows, {{"x", {DType::f32, {Dim(3), n}}}}, {.backend = backend});
    for (const int64_t columns : {16, 9, 13, 16, 32, 17, 64, 33, 48}) {
      const auto values = SmallModel::noise(static_cast<size_t>(3 * columns), 7);
      const Tensor x = Tensor::of(std::span<const double>(values), IntList{3, columns}, DType::f32);
      const auto got = program({x}), want = rows({x});
      for (size_t k = 0; k < want.size(); ++k) {
        const auto a = got[k].to_vector<float>(), b = want[k].to_vector<float>();
        ASSERT_EQ(a.size(), b.size());
        for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5 * (1 + std::abs(b[i]))) << columns;
      }
    }
  }
}

/// `reference` with little memory for one buffer.
class Small : public conformance::Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code allocate(weft_device d, uint64_t bytes, void** handle, weft_error* e) override {
    if (bytes > 20'000) return WEFT_OUT_OF_MEMORY;
    return Wrapped::allocate(d, bytes, handle, e);
  }
};

// 300 rows fit where 512, the next power of two, do not.
TEST(Sizes, ASizeThatFitsRunsWhereTheNextPowerOfTwoDoesNot) {
  static Small& small = *new Small("small", value_or_raise(seam::registry().open("reference"))->backend());
  conformance::adopt(small);
  const Dim n = Dim::symbol("rows", 1, 1024);
  auto program = compile(
      [](const std::vector<Tensor>& in) { return std::vector{sum(cumsum(in[0], 0), {Dim(0)}, false)}; },
      {{"x", {DType::f32, {n, Dim(12)}}}}, {.backend = "small"});
  EXPECT_EQ(program({full(1, {300, 12})})[0].to_vector<float>(), std::vector<float>(12, 45150));
  EXPECT_NE(error_of([&] { (void)program({full(1, {450, 12})}); }).find("small:"), std::string::npos);
  EXPECT_EQ(program({full(1, {2, 12})})[0].to_vector<float>(), std::vector<float>(12, 3));
}

// The default scale is 1 / sqrt(dim), whatever dim turns out to be.
TEST(Sizes, AttentionScalesByAHeadSizeThatIsASymbol) {
  const Dim dim = Dim::symbol("head", 1, 10);
  const auto one = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{attention(in[0], in[1], in[2])};
  };
  for (const char* backend : {"reference", "native"}) {
    const OnBackend on(backend);
    auto program = compile(
        one,
        {{"q", {DType::f64, {2, 3, dim}}}, {"k", {DType::f64, {2, 4, dim}}}, {"v", {DType::f64, {2, 4, 5}}}});
    for (const int64_t n : {4, 7}) {
      const auto drawn = [&](std::vector<int64_t> shape, uint64_t seed) {
        const auto values = SmallModel::noise(static_cast<size_t>(element_count(shape)), seed);
        return Tensor::of(std::span<const double>(values), shape, DType::f64);
      };
      const std::vector<Tensor> in = {drawn({2, 3, n}, 1), drawn({2, 4, n}, 2), drawn({2, 4, 5}, 3)};
      const auto got = program(in)[0].to_vector<double>();
      const auto want = attention(in[0], in[1], in[2], {}, {}, false, 1 / std::sqrt(static_cast<double>(n)));
      const auto right = want.to_vector<double>();
      for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], right[i], 1e-12) << backend << " " << n;
    }
  }
}

}  // namespace
}  // namespace weft::testing::sizes_test
