#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "run_command.h"

// examples/c: a program in C that runs a program file, linked as usual and in one static piece.
namespace weft::c_example_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = WEFT_SOURCE_DIR "/tests/golden/version_1_1.weft";

/// Those of the static programs that this build has.
std::vector<std::string> alone() {
  std::vector<std::string> names = {"reference", "native"};
  std::erase_if(names, [](const auto& n) { return !fs::exists(WEFT_BINARY_DIR "/weft_c_static_" + n); });
  return names;
}
std::string built(const std::string& name) { return WEFT_BINARY_DIR "/" + name; }

TEST(CExample, RunsAProgramFile) {
  const auto usual = run_command(built("weft_c_example ") + kFile + " reference");
  EXPECT_EQ(usual.status, 0) << usual.text;
  EXPECT_EQ(usual.text.find("small on reference\ny f32[1, 4] "), 0u) << usual.text;
  EXPECT_NE(usual.text.find("\nbest i32[1] "), std::string::npos) << usual.text;
  for (const auto& backend : alone()) {
    const auto r = run_command(built("weft_c_static_" + backend + " ") + kFile);
    EXPECT_EQ(r.status, 0) << r.text;
    EXPECT_EQ(r.text.find("small on " + backend + "\ny f32[1, 4] "), 0u) << r.text;
    EXPECT_EQ(r.text.substr(r.text.find('\n')), usual.text.substr(usual.text.find('\n')))
        << "the same numbers";
  }
  const auto beside =
      run_command(built("weft_c_example ") + WEFT_SOURCE_DIR "/tests/golden/version_1_2.weft reference");
  EXPECT_EQ(beside.text, usual.text) << "the same program, its weights beside it";
  const auto wrong = run_command(built("weft_c_example /no/such/file"));
  EXPECT_EQ(wrong.status, 1);
  EXPECT_EQ(wrong.text,
            "load: error 4: can't read '/no/such/file': there is no such file; check its name and folder\n");
}

TEST(CExample, AStaticRuntimeIsSmall) {
  constexpr size_t kMost = 2'900'000;
  for (const auto& backend : alone()) {
    const std::string path = built("weft_c_static_" + backend);
    EXPECT_NE(run_command("ldd " + path).text.find("not a dynamic executable"), std::string::npos);
    std::printf("a static program with backend %s: %.2f MB stripped\n", backend.c_str(),
                static_cast<double>(fs::file_size(path)) / 1e6);
    EXPECT_LE(fs::file_size(path), kMost) << backend;
  }
  if (alone().empty()) GTEST_SKIP() << "no static program was built";
}

// Neither the compiler nor ops: none of their symbols is in the library.
TEST(CExample, TheRuntimeDefinesNoOps) {
  const auto names = run_command("nm -C --defined-only " + built("libweft_runtime.a")).text;
  EXPECT_NE(names.find("weft::runtime::Session::run"), std::string::npos);
  for (const char* other : {"weft::ops::", "weft::ir::", "weft::compiler::", "weft::eager::"})
    EXPECT_EQ(names.find(other), std::string::npos) << other;
}

}  // namespace
}  // namespace weft::c_example_test
