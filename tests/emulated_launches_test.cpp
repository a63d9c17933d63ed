#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "emulated_rig.h"
#include "weft/backends.h"
#include "weft/jit.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/tensor.h"

// Which calls the CUDA backend launches together, on a GPU that `emulated` makes of a CPU.
namespace weft::testing::emulated_launches_test {
namespace {

using namespace emulated;

// What an optimizer does to each tensor is launched by kind, not by tensor.
TEST(EmulatedLaunches, ATrainingStepEndsInFewLaunches) {
  const std::string folder = ::testing::TempDir() + "emulated_tail", step = folder + "/step.weft";
  weft_prints("train --backend native --data " WEFT_SOURCE_DIR "/LICENSE --out " + folder +
              " --layers 1 --heads 2 --width 512 --batch 1 --context 8 --dtype bf16 --steps 1 --fresh"
              " --sample-every 0");
  weft_prints("compile --part step --model " + folder + " --out " + step);
  const auto kernels_of = [&](int runs) {
    std::remove(kernels_file().c_str());
    weft_prints("run " + step + " --repeat " + std::to_string(runs) + " --size batch=1 --backend emulated " +
                    "--plugin " + kPlugin,
                "WEFT_EMULATED_KERNELS=" + kernels_file());
    return kernels_in_file();
  };
  const std::string two = kernels_of(2), three = kernels_of(3);  // all but the first are recorded
  const auto recorded = [&](std::string_view kind) { return times(three, kind) - times(two, kind); };
  EXPECT_EQ(recorded("MeanSquare<"), 1u);
  EXPECT_EQ(recorded("Pieces<Update>"), 1u) << "clipping, AdamW and the copy in 16 bits";
}

[[noreturn]] void take_turns() {
  ::setenv("WEFT_EMULATED_KERNELS", kernels_file().c_str(), 1);
  load_backend(kPlugin);
  constexpr int kTensors = 60;  // more than one launch takes
  std::vector<Tensor> narrow, wide, means;
  for (int i = 0; i < kTensors; ++i) {
    const std::vector<float> numbers(static_cast<size_t>(5 + i), static_cast<float>(i));
    narrow.push_back(Tensor::of(std::span<const float>(numbers), IntList{5 + i}, DType::bf16, "emulated"));
  }
  for (const Tensor& t : narrow)
    wide.push_back(cast(t, DType::f32)), means.push_back(mean_square(wide.back()));
  bool right = true;
  for (int i = 0; i < kTensors; ++i)
    right = right && means[static_cast<size_t>(i)].item() == static_cast<double>(i * i);
  const std::string all = kernels_in_file();
  std::_Exit(right && times(all, "Conversion<") == 2 && times(all, "MeanSquare<") == 2 ? 0 : 1);
}

// Each mean needs the conversion before it, and no conversion needs a mean.
TEST(EmulatedLaunches, KindsOfWorkThatTakeTurnsAreALaunchEach) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::remove(kernels_file().c_str());
  EXPECT_EXIT(take_turns(), ::testing::ExitedWithCode(0), "");
}

void append_numbers(std::vector<double>& all, const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors) {
    const auto numbers = t.to_vector<double>();
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
}
bool are_close(const std::vector<double>& right, const std::vector<double>& here, double absolute,
               double relative) {
  return std::ranges::equal(right, here, [&](double a, double b) {
    return std::abs(a - b) <= std::max(absolute, relative * std::abs(a));
  });
}

/// Parameters after two steps with clipping, in bf16, with the optimizer's states.
std::vector<double> after_steps(const char* backend) {
  constexpr int kParameters = 50;
  set_default_backend(backend);
  std::vector<Tensor> parameters, gradients;
  for (int i = 0; i < kParameters; ++i) {
    std::vector<float> numbers(static_cast<size_t>(3 + 100 * i));
    for (size_t k = 0; k < numbers.size(); ++k)
      numbers[k] = static_cast<float>(static_cast<int>(k * 7 + static_cast<size_t>(i)) % 31 - 15) / 8;
    const auto tensor = [&] {
      return Tensor::of(std::span<const float>(numbers), IntList{3 + 100 * i}, DType::bf16, backend);
    };
    parameters.push_back(tensor().named("p" + std::to_string(i)).requires_grad(true));
    std::ranges::reverse(numbers);
    gradients.push_back(tensor());
  }
  nn::AdamWConfig config;
  config.clip = 1;
  nn::AdamW optimizer(parameters, config);
  for (int step = 0; step < 2; ++step) {
    for (size_t i = 0; i < parameters.size(); ++i)
      reshape(parameters[i], parameters[i].shape()).backward(gradients[i]);
    optimizer.step(Tensor::scalar(1e-2));
  }
  std::vector<double> all;
  append_numbers(all, parameters);
  append_numbers(all, optimizer.states());
  return all;
}

[[noreturn]] void update_on_both() {
  ::setenv("WEFT_EMULATED_KERNELS", kernels_file().c_str(), 1);
  load_backend(kPlugin);
  const bool same = are_close(after_steps("native"), after_steps("emulated"), 1e-5, 0);
  const std::string all = kernels_in_file();
  const bool few = times(all, "Pieces<Update>") == 2 * 2 && times(all, "Conversion<float") == 0;
  if (!same || !few) std::fprintf(stderr, "same: %d\n%s", same, all.c_str());
  std::_Exit(same && few ? 0 : 1);
}

// Clipping, AdamW and the copy in bf16 are one kernel, of 40 parameters at most.
TEST(EmulatedLaunches, AnUpdateIsOnePassOverMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::remove(kernels_file().c_str());
  EXPECT_EXIT(update_on_both(), ::testing::ExitedWithCode(0), "");
}

/// Numbers in [-2, 2], in bf16.
Tensor numbers(IntList sizes, int64_t seed, const char* backend) {
  int64_t count = 1;
  for (const int64_t n : sizes) count *= n;
  std::vector<float> all(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    all[static_cast<size_t>(i)] = static_cast<float>((i * 7 + seed) % 31 - 15) / 8;
  return Tensor::of(std::span<const float>(all), sizes, DType::bf16, backend);
}

/// Keys, values, another product of that size and queries of 16 rows of x, a product of the queries, and the
/// square of a large tensor, of three runs. Keys and values have steps after their products.
std::vector<double> projections(const char* backend) {
  constexpr int64_t kRows = 16, kColumns = 64, kKeys = 2048, kQueries = 4096, kLarge = 1 << 21;
  set_default_backend(backend);
  const NoGrad off;
  const Tensor k = numbers({kKeys, kColumns}, 1, backend), v = numbers({kKeys, kColumns}, 2, backend),
               u = numbers({kKeys, kColumns}, 5, backend), q = numbers({kQueries, kColumns}, 3, backend),
               o = numbers({kColumns, kQueries}, 4, backend);
  auto program = compile(
      [&](const std::vector<Tensor>& in) {
        const Tensor& x = in[0];
        return std::vector<Tensor>{linear(x, u), silu(linear(x, k)), silu(linear(x, v)),
                                   linear(linear(x, q), o), in[1] * in[1]};
      },
      {{"x", {DType::bf16, {kRows, kColumns}}}, {"large", {DType::bf16, {kLarge}}}}, {.backend = backend});
  std::vector<double> all;
  for (int64_t run = 0; run < 3; ++run)
    append_numbers(all, program({numbers({kRows, kColumns}, run, backend), numbers({kLarge}, run, backend)}));
  return all;
}

[[noreturn]] void project_on_both() {
  ::setenv("WEFT_EMULATED_KERNELS", kernels_file().c_str(), 1);
  load_backend(kPlugin);
  const bool same = are_close(projections("native"), projections("emulated"), 0.02, 0.02);
  const size_t launches = times(kernels_in_file(), "skinny::Items");
  if (!same || launches != 6) std::fprintf(stderr, "same: %d, %zu launches\n", same, launches);
  std::_Exit(same && launches == 6 ? 0 : 1);
}

// Most results are too small for streams of their own, though their mean is not.
TEST(EmulatedLaunches, ProductsOfOneXAreALaunch) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::remove(kernels_file().c_str());
  EXPECT_EXIT(project_on_both(), ::testing::ExitedWithCode(0), "");
}

[[noreturn]] void take_lanes() {
  ::setenv("WEFT_EMULATED_KERNELS", kernels_file().c_str(), 1);
  load_backend(kPlugin);
  constexpr int64_t kTensors = 7, kMeans = 6, kSmall = 7, kElements = 1 << 19;
  constexpr size_t kLanes = 4;
  std::vector<Tensor> inputs;
  std::vector<InputSpec> specs;
  for (int64_t i = 0; i < kTensors; ++i) {
    inputs.push_back(numbers({kElements}, i, "emulated"));
    specs.push_back({"x" + std::to_string(i), {DType::bf16, {kElements}}});
  }
  const NoGrad off;
  auto program = compile(
      [&](const std::vector<Tensor>& in) {
        std::vector<Tensor> out;
        for (const Tensor& x : in) out.push_back(softmax(x, -1));
        for (int64_t i = 0; i < kMeans; ++i) out.push_back(mean_square(out[static_cast<size_t>(i)]));
        out.push_back(reshape(out.back(), {1}));
        for (int64_t i = 0; i < kSmall; ++i) out.push_back(softmax(out.back(), -1));
        return out;
      },
      specs, {.backend = "emulated"});
  const auto means_of_runs = [&](int runs) {
    for (int run = 0; run < runs; ++run) (void)program(inputs);
    return times(kernels_in_file(), "MeanSquare<");
  };
  const size_t first = means_of_runs(1), all = means_of_runs(2);  // the others are recorded
  if (first != 1 || all != 1 + 2 * kLanes) std::fprintf(stderr, "%zu and %zu launches\n", first, all);
  std::_Exit(first == 1 && all == 1 + 2 * kLanes ? 0 : 1);
}

// A third of the results are large, as in training, so that calls are divided among lanes. In each of them
// the means are one launch.
TEST(EmulatedLaunches, LanesWaitForOthersOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::remove(kernels_file().c_str());
  EXPECT_EXIT(take_lanes(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::testing::emulated_launches_test
