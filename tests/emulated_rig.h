#pragma once
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/wait.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

// What tests of the plug-in `emulated` share. It is loaded in processes of their own: loaded here, it would
// be one more backend for every test.
namespace weft::testing::emulated {

inline constexpr const char* kPlugin = WEFT_BINARY_DIR "/plugins/emulated.so";

struct Ended {
  int code = -1;  ///< -1: it did not end by itself
  std::string text;
};
inline Ended run(const std::string& command) {
  Ended ended;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  char part[256];
  while (pipe && ::fgets(part, sizeof part, pipe)) ended.text += part;
  const int status = pipe ? ::pclose(pipe) : -1;
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  return ended;
}

inline Ended run(const std::string& settings, const std::string& arguments) {
  return run(settings + " " WEFT_BINARY_DIR "/weft " + arguments);
}

/// What a call of the program prints.
inline std::string weft_prints(const std::string& arguments, const std::string& settings = "") {
  const Ended ended = run(settings, arguments);
  EXPECT_EQ(ended.code, 0) << arguments << "\n" << ended.text;
  return ended.text;
}
inline size_t times(const std::string& text, std::string_view what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

/// Where the runs of this test write down which kernels were launched.
inline std::string kernels_file() {
  return ::testing::TempDir() + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
         "_kernels.txt";
}
inline std::string kernels_in_file() {
  std::ifstream in(kernels_file());
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace weft::testing::emulated
