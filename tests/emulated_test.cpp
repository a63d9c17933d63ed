#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "emulated_rig.h"
#include "weft/backends.h"
#include "weft/generate.h"
#include "weft/jit.h"
#include "weft/ops.h"
#include "weft/tensor.h"

// The CUDA backend, its host's side and its kernels, on a GPU that `emulated` makes of a CPU.
namespace weft::testing::emulated_test {
namespace {

using namespace emulated;

std::string check(const std::string& arguments, const std::string& settings = "") {
  // One seed: a drawn case may have thousands of blocks, which take longer than a case may.
  return weft_prints("check " + std::string(kPlugin) + " --seed 7 " + arguments, settings);
}

constexpr const char* kKernels[] = {"argmax.rows",
                                    "attention.flash",
                                    "attention_grad.flash",
                                    "embedding.rows",
                                    "softmax.rows",
                                    "softmax_grad.rows",
                                    "layer_norm.rows",
                                    "layer_norm_grad.rows",
                                    "rms_norm.rows",
                                    "rms_norm_grad.rows",
                                    "cross_entropy.rows",
                                    "cross_entropy_grad.rows",
                                    "cross_entropy_with_grad.rows",
                                    "scatter_add.rows",
                                    "sum.columns",
                                    "global_norm_clip.pieces",
                                    "cast.pieces",
                                    "assign.pieces",
                                    "mean_square.pieces",
                                    "gelu.elements",
                                    "gelu_grad.elements",
                                    "linear.skinny",
                                    "rope.rows",
                                    "ragged_cache_append.rows",
                                    "ragged_attention.split"};

std::string op_of(std::string_view kernel) { return std::string(kernel.substr(0, kernel.find('.'))); }

/// These checks of the ops that have kernels.
std::string of_all_ops(const std::string& checks) {
  std::string only;
  for (const char* kernel : kKernels) only += " --only '" + checks + "/" + op_of(kernel) + " '";
  return only;
}

/// What ran in the cases of these ops: their support matrix. They are judged, too, and run once.
const std::string& matrix_of_cases() {
  static const std::string matrix = [] {
    const std::string file = ::testing::TempDir() + "emulated.md";
    check(of_all_ops("ops") + " --matrix " + file);
    std::ifstream in(file);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  return matrix;
}

TEST(Emulated, KernelsOfAGpuGiveRightAnswers) {
  EXPECT_FALSE(matrix_of_cases().empty());
  for (const char* checks : {"sizes", "edges", "guards", "half_gradients"}) check(of_all_ops(checks));
}

// adamw_step is only taken where every result is written over its operand.
TEST(Emulated, ResultsAreWrittenOverOperands) { check("--only writes_over_operands"); }

// In bf16 with f32 masters. Every call agrees with reference's.
TEST(Emulated, ACompiledTrainingStepIsRight) {
  const std::string folder = ::testing::TempDir() + "emulated_step", step = folder + "/step.weft";
  weft_prints("train --backend native --data " WEFT_SOURCE_DIR "/LICENSE --out " + folder +
              " --layers 1 --heads 2 --width 32 --batch 2 --context 32 --dtype bf16 --steps 1 --fresh"
              " --sample-every 0");
  weft_prints("compile --part step --model " + folder + " --out " + step);
  const std::string on = " --size batch=2 --backend emulated --plugin " + std::string(kPlugin);
  const std::string shadow = weft_prints("run " + step + " --shadow=reference" + on);
  EXPECT_NE(shadow.find("agree with reference"), std::string::npos) << shadow;
  const std::string plan = weft_prints("run " + step + " --plan" + on);
  EXPECT_EQ(times(plan, "  emulated.region.guards "), times(plan, "  emulated.adamw_step.pieces ") - 1)
      << "the embedding has two gradients, which are added first\n"
      << plan;
  EXPECT_EQ(times(plan, ".add."), 12u) << "of embeddings, of two layers to the residual, of six biases, "
                                          "which no product adds here, and three of gradients\n"
                                       << plan;
}

/// A product of one row with what the kernel before it writes, and one with a constant, of three runs.
std::vector<double> products_of_runs(const char* backend) {
  constexpr int64_t kRows = 40, kColumns = 64;
  set_default_backend(backend);
  const auto numbers = [&](int64_t n, int64_t seed) {
    std::vector<float> all(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i)
      all[static_cast<size_t>(i)] = static_cast<float>((i * 7 + seed) % 31 - 15) / 8;
    return all;
  };
  const auto tensor = [&](IntList sizes, int64_t seed) {
    const auto all = numbers(sizes.size() == 2 ? sizes[0] * sizes[1] : sizes[0], seed);
    return Tensor::of(std::span<const float>(all), sizes, DType::bf16, backend);
  };
  const Tensor kept = tensor({kRows, kColumns}, 3);
  const NoGrad off;
  auto program = compile(
      [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{linear(in[0], softmax(in[1], -1)), linear(in[0], kept)};
      },
      {{"x", {DType::bf16, {1, kColumns}}}, {"w", {DType::bf16, {kRows, kColumns}}}}, {.backend = backend});
  std::vector<double> all;
  for (int64_t run = 0; run < 3; ++run)
    for (const Tensor& y : program({tensor({1, kColumns}, run), tensor({kRows, kColumns}, 5 * run)})) {
      const auto of_run = y.to_vector<double>();
      all.insert(all.end(), of_run.begin(), of_run.end());
    }
  return all;
}

[[noreturn]] void multiply_on_both() {
  load_backend(kPlugin);
  const auto right = products_of_runs("native"), here = products_of_runs("emulated");
  bool same = right.size() == here.size();
  for (size_t i = 0; same && i < right.size(); ++i)
    same = std::abs(right[i] - here[i]) <= 0.02 * std::max(1.0, std::abs(right[i]));
  std::_Exit(same ? 0 : 1);
}

// A kernel begins while the one before it runs. It may read weights then, but not those that this one writes.
TEST(Emulated, WeightsAreReadAheadUnlessAStepWritesThem) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(multiply_on_both(), ::testing::ExitedWithCode(0), "");
}

// Queries, keys and norms of a token are launched together with what reads them, and the keys are split.
TEST(Emulated, DecodingGivesTheSameText) {
  const std::string folder = ::testing::TempDir() + "emulated_llama", text = folder + ".txt";
  std::ofstream out(text);
  for (int i = 0; i < 60; ++i) out << "to be or not to be, that is the question\n";
  out.close();
  weft_prints("train --backend native --data " + text + " --model llama --out " + folder +
              " --layers 2 --heads 4 --kv-heads 2 --width 32 --batch 8 --context 96 --dtype bf16 --steps 150"
              " --rate 5e-3 --fresh --sample-every 0");
  const std::string prompt = "to be or not to be, that is the question\nto be or not to be, th";
  const auto generated = [&](const std::string& backend) {
    const std::string printed =
        weft_prints("generate --model " + folder + " --temperature 0 --length 18 --prompt '" + prompt +
                    "' --plugin " + kPlugin + " --backend " + backend);
    return printed.substr(0, printed.find("weft:"));
  };
  const std::string right = generated("native");
  EXPECT_EQ(right, prompt + "at is the question\n");
  EXPECT_EQ(generated("emulated"), right);
}

/// What differs between the models that decode.
struct Decoding {
  int64_t batch, hidden, head_dim;
  bool norm_heads;  ///< Queries and keys of each head are normalized.
};

/// Scores of some tokens after a prompt, each token alone.
std::vector<float> decoded(const char* backend, const Decoding& how) {
  set_default_backend(backend);
  const NoGrad off;
  nn::Llama model({.vocabulary = 300,
                   .context = 200,
                   .layers = 2,
                   .heads = 4,
                   .kv_heads = 2,
                   .width = 128,
                   .hidden = how.hidden,
                   .head_dim = how.head_dim,
                   .norm_heads = how.norm_heads,
                   .tied_embedding = true});
  nn::build(model, {.seed = 1, .dtype = DType::bf16});
  nn::set_training(model, false);
  const int64_t batch = how.batch;
  nn::Decoder decoder(model, {.batch = batch, .capacity = 160});
  std::vector<std::vector<int32_t>> tokens(static_cast<size_t>(batch));
  std::vector<float> all;
  for (int step = 0; step < 5; ++step) {
    std::vector<std::span<const int32_t>> next;
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i].clear();
      const int n = step ? 1 : 130 + 5 * static_cast<int>(i);  // so that keys are split
      for (int t = 0; t < n; ++t) tokens[i].push_back((37 * t + 11 * step + static_cast<int>(i)) % 300);
      next.emplace_back(tokens[i]);
    }
    decoder.read(next);
    for (int64_t i = 0; i < batch; ++i) {
      const auto scores = decoder.scores(i);
      all.insert(all.end(), scores.begin(), scores.end());
      const auto best = std::ranges::max_element(scores) - scores.begin();
      if (decoder.choice(i) != best) return {};
    }
  }
  return all;
}

bool decodes_like_native(const Decoding& how) {
  const auto right = decoded("native", how), here = decoded("emulated", how);
  bool same = !right.empty() && right.size() == here.size();
  for (size_t i = 0; same && i < right.size(); ++i) same = std::abs(right[i] - here[i]) < 0.02f;
  return same;
}

[[noreturn]] void decode_on_both() {
  load_backend(kPlugin);
  const bool same = decodes_like_native({.batch = 1, .hidden = 264, .head_dim = 64, .norm_heads = true}) &&
                    decodes_like_native({.batch = 2, .hidden = 264, .head_dim = 64, .norm_heads = true});
  std::_Exit(same ? 0 : 1);
}

// Of one token, attention does what waits before it: norms of heads, rotations, and the new rows of caches.
TEST(Emulated, DecodingGivesTheSameScores) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(decode_on_both(), ::testing::ExitedWithCode(0), "");
}

[[noreturn]] void decode_by_chains(const Decoding& how) {
  ::setenv("WEFT_EMULATED_KERNELS", kernels_file().c_str(), 1);
  load_backend(kPlugin);
  const bool same = decodes_like_native(how);
  const size_t chains = times(kernels_in_file(), "ChainTables");
  if (!same || chains < 2) std::fprintf(stderr, "same: %d, %zu chains\n", same, chains);
  std::_Exit(same && chains >= 2 ? 0 : 1);
}

// The products and the attention of a token are one kernel, whose blocks wait for each other's results. Keys
// of a block are more than a chunk; rows are shorter than one, or longer by a part.
TEST(Emulated, DecodingIsOneKernel) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const Decoding& how : {Decoding{.batch = 1, .hidden = 256, .head_dim = 64, .norm_heads = true},
                              {.batch = 1, .hidden = 2176, .head_dim = 128, .norm_heads = false},
                              {.batch = 1, .hidden = 4224, .head_dim = 64, .norm_heads = false}}) {
    std::remove(kernels_file().c_str());
    EXPECT_EXIT(decode_by_chains(how), ::testing::ExitedWithCode(0), "");
  }
}

// A provider that refused everything would be right, too.
TEST(Emulated, TheKernelsRan) {
  const std::string& text = matrix_of_cases();
  for (const char* kernel : kKernels)
    for (const char* dtype : {"\n| f32 |", "\n| f16 |", "\n| bf16 |"}) {
      const std::string section = "\n## " + op_of(kernel) + "\n";
      const size_t begin = text.find(section), row = text.find(dtype, begin);
      ASSERT_NE(begin, std::string::npos) << section << text;
      EXPECT_LT(text.find(std::string(" ") + kernel, row), text.find('\n', row + 1))
          << dtype << " of " << section << text;
    }
}

/// Some steps of a small model's training. WEFT_GPU_BLOCKING=1 makes the text of a fault exact.
Ended train(const std::string& settings, const std::string& arguments) {
  const std::string text = ::testing::TempDir() + "emulated.txt";
  std::ofstream out(text);
  for (int i = 0; i < 40; ++i) out << "to be or not to be, that is the question\n";
  out.close();
  return run(settings,
             std::string("train --plugin ") + kPlugin + " --backend emulated --data " + text +
                 " --layers 1 --heads 1 --context 16 --batch 2 --steps 3 --fresh --sample-every 0 --out " +
                 ::testing::TempDir() + "emulated_out " + arguments);
}

void expect_refused(const Ended& ended, const char* text) {
  EXPECT_EQ(ended.code, 1) << ended.text;
  EXPECT_NE(ended.text.find(text), std::string::npos) << ended.text;
}

TEST(Emulated, PlansOfChainsDoWhatTheirStepsDo) {
  const Ended ended = run(WEFT_BINARY_DIR "/out_of_tree/emulated/chain_plans");
  EXPECT_EQ(ended.code, 0) << ended.text;
}

TEST(Emulated, TheHostsSideKeepsTheContract) {
  std::string only;
  for (const char* name :
       {"aligns_memory", "copies_every_byte", "copies_pinned_memory", "errors_come_once", "gives_memory_back",
        "imports_memory", "keeps_buffers_until_passed", "keeps_live_buffers", "negotiates", "opens_again",
        "points_are_reached_in_turn", "ranks_its_kernels", "reads_no_handle", "replays_sequences",
        "reports_its_errors", "runs_beside_others", "waits_for_long_queues", "waits_when_asked"})
    only += std::string(" --only ") + name;
  check(only);
  check(only, "WEFT_EMULATED_DEVICES=2");
  check(only, "WEFT_GPU_POOL=0");
  check(only, "WEFT_GPU_TIMEOUT=20");
}

TEST(Emulated, AFaultNamesTheKernelAndTheProcessLives) {
  const char* const dead = "emulated:0 can't be used any more in this process: ";
  expect_refused(train("WEFT_EMULATED_FAULT=22", "--width 16"), dead);
  expect_refused(train("WEFT_EMULATED_FAULT=22 WEFT_GPU_BLOCKING=1", "--width 16"),
                 "last waited for: emulated.attention_grad.flash");
  expect_refused(train("WEFT_EMULATED_FAULT=150", "--width 16 --compile"), dead);
}

TEST(Emulated, AKernelThatHangsIsGivenUp) {
  const char* const text = "a queue did not end within 0.5 s (WEFT_GPU_TIMEOUT)";
  expect_refused(train("WEFT_EMULATED_HANG=20 WEFT_GPU_TIMEOUT=0.5", "--width 16"), text);
  expect_refused(train("WEFT_EMULATED_HANG=150 WEFT_GPU_TIMEOUT=0.5", "--width 16 --compile"), text);
}

TEST(Emulated, MemoryThatRunsOutIsSaid) {
  expect_refused(train("WEFT_EMULATED_MEMORY=5000000", "--width 128 --compile"),
                 "bytes are wanted; the device has 5000000, of which");
  EXPECT_EQ(train("WEFT_EMULATED_MEMORY=9000000", "--width 128 --compile").code, 0);
}

TEST(Emulated, ADeviceThatIsNotThereIsRefused) {
  const Ended ended = run("", std::string("check ") + kPlugin + ":7 --only negotiates");
  EXPECT_EQ(ended.code, 1) << ended.text;
  EXPECT_NE(ended.text.find("has 1 device, numbered from 0"), std::string::npos) << ended.text;
}

[[noreturn]] void copy_between_devices() {
  ::setenv("WEFT_EMULATED_DEVICES", "2", 1);
  load_backend(kPlugin);
  bool same = true;
  for (const int64_t n : {1, 1000, 3'000'001}) {
    std::vector<float> numbers(static_cast<size_t>(n));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 977);
    const Tensor t = Tensor::of(std::span<const float>(numbers), IntList{n}, DType::f32, "emulated:0");
    const Tensor there = t.to("emulated:1");
    same =
        same && there.to_vector<float>() == numbers && there.to("emulated:0").to_vector<float>() == numbers;
  }
  std::_Exit(same ? 0 : 1);
}

TEST(Emulated, DevicesReachEachOther) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(copy_between_devices(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::testing::emulated_test
