#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "lab/kernels/contest.h"
#include "lab/kernels/python.h"

// Kernels in Python, as far as no Python is wanted; python/tests/test_lab.py has the rest.
namespace weft::lab_python_test {
namespace {

using namespace weft::lab;

// WEFT_PYTHON while it lives.
class Named {
 public:
  explicit Named(const char* program) { ::setenv("WEFT_PYTHON", program, 1); }
  ~Named() { ::unsetenv("WEFT_PYTHON"); }
  Named(const Named&) = delete;
};

const Provider& python() { return *value_or_raise(provider_of("some_kernel.py")); }

TEST(LabPython, TakesFilesAndTheLibrariesThatAreThereByName) {
  EXPECT_STREQ(python().name, "python");
  for (const char* name :
       {"dir/mine.py", "mine.py:softmax", "numpy", "torch", "torch_compile", "python.triton"})
    EXPECT_EQ(value_or_raise(provider_of(name)), &python()) << name;
  for (const char* name : {"native", "native.softmax.rows", "mine.cpp"})
    EXPECT_NE(value_or_raise(provider_of(name)), &python()) << name;
  EXPECT_FALSE(python().takes("_sources")) << "a helper of theirs";
}

TEST(LabPython, WithoutAPythonTheListSaysSo) {
  const Named named("/no/such/python");
  const auto offers = python().offers();
  ASSERT_TRUE(std::ranges::any_of(offers, [](const Offer& o) { return o.contender == "torch"; }));
  for (const auto& o : offers) {
    EXPECT_NE(o.reason.find("there is no Python /no/such/python"), std::string::npos) << o.reason;
    EXPECT_NE(o.reason.find("WEFT_PYTHON"), std::string::npos) << o.reason;
  }
}

TEST(LabPython, APythonWithoutWeftIsToldWhatToDo) {
  const Named named("/bin/false");
  const auto reasons = reasons_of({"numpy"});
  ASSERT_FALSE(reasons.ok());
  EXPECT_EQ(reasons.status().code(), Code::unavailable);
  EXPECT_NE(reasons.status().message().find("install Weft into it"), std::string::npos)
      << reasons.status().message();
}

TEST(LabPython, AFileThatIsNotThereIsSaid) {
  const auto made = python().prepare("/no/such/mine.py:softmax", "");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().message(), "there is no file /no/such/mine.py");
}

TEST(LabPython, ItsProcessesArePythonsWithTheOptionsOfTheLabs) {
  const Named named("/opt/python");
  Process process{.command = {"weft", "lab", "--worker", "--threads", "3"}, .seconds = 20};
  python().process("numpy", process);
  const std::vector<std::string> end(process.command.end() - 6, process.command.end());
  EXPECT_EQ(end,
            (std::vector<std::string>{"/opt/python", "-m", "weft.lab.worker", "--worker", "--threads", "3"}));
  EXPECT_GT(process.open_seconds, process.seconds) << "it imports and compiles";
}

}  // namespace
}  // namespace weft::lab_python_test
