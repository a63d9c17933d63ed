#include <unistd.h>

#include <filesystem>

#include "run_command.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ledger.h"
#include "weft/ops.h"

// What no given backend takes, for its op or for its dtype alone: all of it is listed at once, and nothing
// has run. good_only_f32 adds and multiplies f32, good_longer_table adds any dtype.
namespace weft::testing::missing_kernels_test {
namespace {

/// Works in f32, which runs; in f64 and i32, for whose dtypes a kernel of the op is missing; and a sine.
Compiled made(const std::string& backend, Fallback fallback) {
  return compile(
      [](const std::vector<Tensor>& in) {
        const Tensor a = mul(in[0] + in[0], in[0]);
        return std::vector{a, mul(in[1] + in[1], in[1]), mul(in[2], in[2]), sin(a)};
      },
      {{"x", {DType::f32, {3}}}, {"wide", {DType::f64, {3}}}, {"whole", {DType::i32, {3}}}},
      {.backend = backend, .policy = {.fallback = fallback}, .fuse = false});
}

std::vector<Tensor> inputs() {
  return {Tensor::of({1, 2, 3}, {3}), Tensor::of({1, 2, 3}, {3}, DType::f64),
          Tensor::of({1, 2, 3}, {3}, DType::i32)};
}

void expect_has(const std::string& words, std::initializer_list<const char*> wanted) {
  for (const char* w : wanted) EXPECT_NE(words.find(w), std::string::npos) << w << "\nin: " << words;
}

TEST(MissingKernels, OfOneBackendAreListedAtOnce) {
  WEFT_NEEDS_PLUGIN("good_only_f32");
  auto program = made("good_only_f32", Fallback::forbid);
  reset_ledger();
  try {
    (void)program(inputs());
    FAIL() << "it ran";
  } catch (const Error& e) {
    EXPECT_EQ(e.status().code(), Code::unsupported);
    expect_has(e.what(),
               {"4 different calls have no kernel", "add on good_only_f32 for (f64[3], f64[3])",
                "good_only_f32.add.shared  computes in f32 alone, got f64",
                "mul on good_only_f32 for (f64[3], f64[3])", "mul on good_only_f32 for (i32[3], i32[3])",
                "good_only_f32.mul.shared  computes in f32 alone, got i32",
                "sin on good_only_f32 for (f32[3])", "good_only_f32 has no kernel of this name"});
  }
  for (const auto& row : ledger_rows())
    EXPECT_TRUE(row.device != "good_only_f32" || row.calls == 0) << row.kernel << " ran";
}

// Of two backends, the second takes what only the dtype kept from the first: the others are left.
TEST(MissingKernels, OfAllGivenBackendsAreListedAtOnce) {
  WEFT_NEEDS_PLUGIN("good_only_f32");
  WEFT_NEEDS_PLUGIN("good_longer_table");
  auto program = made("good_only_f32,good_longer_table", Fallback::allow);
  try {
    (void)program(inputs());
    FAIL() << "it ran";
  } catch (const Error& e) {
    expect_has(e.what(), {"3 different calls have no kernel", "mul on good_only_f32 for (f64[3], f64[3])",
                          "mul on good_only_f32 for (i32[3], i32[3])", "sin on good_only_f32 for (f32[3])"});
    EXPECT_EQ(std::string(e.what()).find("add on "), std::string::npos) << e.what();
  }
}

TEST(MissingKernels, AreListedByThePrograms) {
  const auto path =
      (std::filesystem::temp_directory_path() / fmt::format("weft_missing_{}.weft", ::getpid())).string();
  made("reference", Fallback::forbid).save(path);
  const std::string plugins = "--plugin " WEFT_BINARY_DIR "/plugins/good_only_f32.so --backend good_only_f32";
  for (const char* command : {"run", "bench"}) {
    const auto r = weft_program(fmt::format("{} {} {}", command, path, plugins));
    EXPECT_EQ(r.status, 1) << command;
    expect_has(r.text, {"4 different calls have no kernel", "mul on good_only_f32 for (f64[3], f64[3])",
                        "computes in f32 alone, got i32", "sin on good_only_f32 for (f32[3])"});
  }
  const auto right = weft_program("run " + path + " --backend reference");
  EXPECT_EQ(right.status, 0) << right.text;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace weft::testing::missing_kernels_test
