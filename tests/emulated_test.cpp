#include <gtest/gtest.h>
#include <stdio.h>

#include <string>
#include <string_view>

// The kernels of the CUDA backend, run on a CPU by the provider `emulated`, in a process of their own: loaded
// here, it would be one more backend for every test.
namespace weft::testing {
namespace {

constexpr const char* kPlugin = WEFT_BINARY_DIR "/plugins/emulated.so";

/// What a call of the program prints.
std::string weft_prints(const std::string& arguments) {
  const std::string command = WEFT_BINARY_DIR "/weft " + arguments;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::string text;
  char part[256];
  while (pipe && ::fgets(part, sizeof part, pipe)) text += part;
  EXPECT_EQ(pipe ? ::pclose(pipe) : -1, 0) << command << "\n" << text;
  return text;
}
std::string check(const std::string& arguments) {
  // One seed: a drawn case may have thousands of blocks, which take longer than a case may.
  return weft_prints("check " + std::string(kPlugin) + " --seed 7 " + arguments);
}

constexpr const char* kKernels[] = {"attention.flash",         "attention_grad.flash", "softmax.rows",
                                    "softmax_grad.rows",       "layer_norm.rows",      "layer_norm_grad.rows",
                                    "rms_norm.rows",           "rms_norm_grad.rows",   "cross_entropy.rows",
                                    "cross_entropy_grad.rows", "scatter_add.rows",     "sum.columns",
                                    "global_norm_clip.pieces", "cast.pieces",          "assign.pieces",
                                    "mean_square.pieces",      "gelu.elements",        "gelu_grad.elements"};

std::string op_of(std::string_view kernel) { return std::string(kernel.substr(0, kernel.find('.'))); }

/// These checks of the ops that have kernels.
std::string of_all_ops(const std::string& checks) {
  std::string only;
  for (const char* kernel : kKernels) only += " --only '" + checks + "/" + op_of(kernel) + " '";
  return only;
}

TEST(Emulated, KernelsOfAGpuGiveRightAnswers) {
  for (const char* checks : {"ops", "sizes", "edges", "guards", "half_gradients"}) check(of_all_ops(checks));
}

// adamw_step is only taken where every result is written over its operand.
TEST(Emulated, ResultsAreWrittenOverOperands) { check("--only writes_over_operands"); }

size_t times(const std::string& text, std::string_view what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

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
  EXPECT_EQ(times(plan, ".add."), 3u) << "of embeddings, and of two layers to the residual\n" << plan;
}

// A provider that refused everything would be right, too.
TEST(Emulated, TheKernelsRan) {
  const std::string file = ::testing::TempDir() + "emulated.md";
  check(of_all_ops("ops") + " --matrix " + file);
  FILE* matrix = ::fopen(file.c_str(), "r");
  ASSERT_NE(matrix, nullptr);
  std::string text(size_t{1} << 20, '\0');
  text.resize(::fread(text.data(), 1, text.size(), matrix));
  ::fclose(matrix);
  for (const char* kernel : kKernels)
    for (const char* dtype : {"\n| f32 |", "\n| f16 |", "\n| bf16 |"}) {
      const std::string section = "\n## " + op_of(kernel) + "\n";
      const size_t begin = text.find(section), row = text.find(dtype, begin);
      ASSERT_NE(begin, std::string::npos) << section << text;
      EXPECT_LT(text.find(std::string(" ") + kernel, row), text.find('\n', row + 1))
          << dtype << " of " << section << text;
    }
}

}  // namespace
}  // namespace weft::testing
