#include <set>

#include "conformance/check.h"
#include "test_backends.h"
#include "weft/ledger.h"
#include "weft/ops.h"

// The kernels of the CUDA backend, run on a CPU by the provider `emulated`.
namespace weft::testing {
namespace {

TEST(Emulated, KernelsOfAGpuGiveRightAnswers) {
  WEFT_NEEDS_PLUGIN("emulated");
  for (const char* only :
       {"ops/attention", "ops/softmax ", "sizes/attention", "sizes/softmax ", "edges/softmax ",
        "half_gradients/attention", "guards/attention", "guards/softmax "}) {
    conformance::CheckRun run("emulated", {.only = only});
    for (const conformance::Check* check : conformance::all_checks()) run.run(*check);
    for (const auto& f : run.failures()) ADD_FAILURE() << run.command(f) << "\n  " << f.found.words;
    EXPECT_GT(run.executed(), 0) << only;
  }
}

// A provider that refused everything would be right, too.
TEST(Emulated, TheKernelsRan) {
  WEFT_NEEDS_PLUGIN("emulated");
  const std::vector<double> numbers(2 * 3 * 70 * 16, 0.25);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const int64_t shape[] = {2, 3, 70, 16};
    const Tensor x = Tensor::of(std::span<const double>(numbers), shape, dtype, "emulated");
    reset_ledger();
    EXPECT_EQ(attention(x, x, x).to_vector<float>(), std::vector<float>(numbers.size(), 0.25f));
    EXPECT_EQ(softmax(x, -1).to_vector<float>(), std::vector<float>(numbers.size(), 1.0f / 16));
    std::set<std::string> ran;
    for (const auto& row : ledger_rows()) ran.insert(row.kernel);
    EXPECT_TRUE(ran.contains("emulated.attention.flash")) << name(dtype);
    EXPECT_TRUE(ran.contains("emulated.softmax.rows")) << name(dtype);
  }
}

}  // namespace
}  // namespace weft::testing
