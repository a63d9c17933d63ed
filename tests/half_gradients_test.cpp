#include "conformance/check.h"
#include "test_backends.h"
#include "weft/ops.h"

namespace weft::testing::half_gradients_test {
namespace {

using conformance::CheckRun;

// Every rule, at sizes and magnitudes that halves do not reach in between; weft check asks it of every
// backend.
TEST(HalfGradients, AreComputedInF32AndRoundedOnce) {
  CheckRun run("native", {});
  for (const auto* check : conformance::all_checks())
    if (check->name == std::string_view("half_gradients")) run.run(*check);
  for (const auto& f : run.failures()) ADD_FAILURE() << run.command(f) << "\n  " << f.found.words;
  EXPECT_GT(run.executed(), 500);
}

Tensor halves(std::vector<double> elements, std::vector<int64_t> shape) {
  return Tensor::of<double>(elements, shape, DType::f16).requires_grad(true);
}

TEST(HalfGradients, OfRmsNormDoNotOverflowInBetween) {
  Tensor x = halves({300, 1}, {1, 2}), w = halves({1, 1}, {2});
  rms_norm(x, w).backward(Tensor::of({1, 1}, {1, 2}, DType::f16));
  EXPECT_NEAR(w.grad().to_vector<double>()[0], 1.41421, 1e-3);
}

TEST(HalfGradients, CountBeyondWhatAHalfHolds) {
  Tensor x = halves(std::vector<double>(70'000, 1.0), {70'000}),
         y = halves(std::vector<double>(70'000, 3.0), {70'000});
  mean(x).backward(Tensor::scalar(7'000, DType::f16));
  EXPECT_NEAR(x.grad().to_vector<double>()[69'999], 0.1, 1e-4);
  mse(x.detach().requires_grad(true), y).backward(Tensor::scalar(7'000, DType::f16));
  EXPECT_NEAR(y.grad().to_vector<double>()[0], 0.4, 1e-3);
}

TEST(HalfGradients, OfPowerDoNotReadAnOutputThatOverflowed) {
  Tensor a = halves({8}, {1}), b = halves({5.5}, {1});
  power(a, b).backward(Tensor::of({0.25}, {1}, DType::f16));
  EXPECT_NEAR(a.grad().item(), 15929.0, 16);
  EXPECT_NEAR(b.grad().item(), 48182.0, 32);
}

// 40,000 + 40,000 is infinite in f16, though the sum of all three is not.
TEST(HalfGradients, OfOneTensorThatIsReadOftenAreSummedInF32) {
  Tensor x = halves({1}, {1});
  const auto scale = [](double v) { return Tensor::of({v}, {1}, DType::f16); };
  (x * scale(40'000) + x * scale(40'000) + x * scale(-60'000)).backward(Tensor::of({1}, {1}, DType::f16));
  EXPECT_EQ(x.grad().item(), 20'000);
}

}  // namespace
}  // namespace weft::testing::half_gradients_test
