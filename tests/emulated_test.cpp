#include <gtest/gtest.h>
#include <stdio.h>

#include <string>

// The kernels of the CUDA backend, run on a CPU by the provider `emulated`, in a process of their own: loaded
// here, it would be one more backend for every test.
namespace weft::testing {
namespace {

std::string check(const std::string& arguments) {
  constexpr const char* kPlugin = WEFT_BINARY_DIR "/plugins/emulated.so";
  const std::string command = std::string(WEFT_BINARY_DIR "/weft check ") + kPlugin + " " + arguments;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::string text;
  char part[256];
  while (pipe && ::fgets(part, sizeof part, pipe)) text += part;
  EXPECT_EQ(pipe ? ::pclose(pipe) : -1, 0) << command << "\n" << text;
  return text;
}

TEST(Emulated, KernelsOfAGpuGiveRightAnswers) {
  for (const char* checks : {"ops", "sizes", "edges", "guards", "half_gradients"}) {
    std::string only;
    for (const char* op : {"attention", "softmax "})
      only += " --only '" + std::string(checks) + "/" + op + "'";
    check(only);
  }
}

// A provider that refused everything would be right, too.
TEST(Emulated, TheKernelsRan) {
  const std::string file = ::testing::TempDir() + "emulated.md";
  check("--only ops/attention --only 'ops/softmax ' --matrix " + file);
  FILE* matrix = ::fopen(file.c_str(), "r");
  ASSERT_NE(matrix, nullptr);
  std::string text(size_t{1} << 20, '\0');
  text.resize(::fread(text.data(), 1, text.size(), matrix));
  ::fclose(matrix);
  for (const char* kernel : {"attention.flash", "attention_grad.flash", "softmax.rows"})
    for (const char* dtype : {"\n| f32 |", "\n| f16 |", "\n| bf16 |"}) {
      const std::string op = kernel, section = "\n## " + op.substr(0, op.find('.')) + "\n";
      const size_t begin = text.find(section), row = text.find(dtype, begin);
      ASSERT_NE(begin, std::string::npos) << section << text;
      EXPECT_LT(text.find(" " + op, row), text.find('\n', row + 1)) << dtype << " of " << section << text;
    }
}

}  // namespace
}  // namespace weft::testing
