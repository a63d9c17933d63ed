#include <gtest/gtest.h>

#include <cmath>

#include "runtime/session.h"
#include "seam/registry.h"
#include "small_model.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ledger.h"
#include "weft/ops.h"

// A program on a real CUDA device: recorded into a graph, run again and again, and compared with the oracle.
namespace weft::testing::cuda_test {
namespace {

constexpr int64_t kRows = 96, kColumns = 160;
constexpr int kLayers = 6;

Tensor noise(IntList shape, uint64_t seed, const std::string& backend) {
  const auto values =
      SmallModel::noise(static_cast<size_t>(element_count(std::span<const int64_t>(shape))), seed);
  return Tensor::of(std::span<const double>(values), shape, DType::f32, backend);
}

/// Layers of a product and a sum from rendered text, and a softmax of the backend's own, which starts while
/// the sum before it drains.
Compiled layers(const std::string& backend, const Tensor& w) {
  return compile(
      [&](const std::vector<Tensor>& in) {
        Tensor y = in[0];
        for (int i = 0; i < kLayers; ++i) y = softmax(matmul(y, w) + in[0], 1);
        return std::vector{y, matmul(y, w)};
      },
      {{"x", {DType::f32, {kRows, kColumns}}}}, {.backend = backend, .fuse = false});
}

// Each softmax has rows that sum to 1, so an error of 1e-6 of the operands stays one.
TEST(Cuda, AProgramRunsAsAGraph) {
  if (!is_backend_available("cuda")) GTEST_SKIP() << "cuda is not available here";
  const Tensor w_there = noise({kColumns, kColumns}, 1, "cuda");
  const Tensor w_here = noise({kColumns, kColumns}, 1, "reference");
  auto there = layers("cuda", w_there);
  auto here = layers("reference", w_here);
  reset_ledger();
  std::vector<std::vector<Tensor>> results;
  constexpr int kRuns = 12;
  for (int run = 0; run < kRuns; ++run)
    results.push_back(there.enqueue({noise({kRows, kColumns}, 100 + static_cast<uint64_t>(run), "cuda")}));
  there.wait();
  for (int run = 0; run < kRuns; ++run) {
    const auto expected = here({noise({kRows, kColumns}, 100 + static_cast<uint64_t>(run), "reference")});
    for (size_t k = 0; k < expected.size(); ++k) {
      const auto got = results[static_cast<size_t>(run)][k].to_vector<double>();
      const auto want = expected[k].to_vector<double>();
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 2e-6) << "run " << run << ", output " << k << ", element " << i;
    }
  }
  for (const auto& row : ledger_rows()) {
    if (row.device != "cuda") continue;
    EXPECT_EQ(row.bytes, 0u) << row.op;
    if (row.op == "softmax") {
      EXPECT_EQ(row.kernel, "cuda.softmax.rows");
    }
  }
}

}  // namespace
}  // namespace weft::testing::cuda_test
