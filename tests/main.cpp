#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <string>

#include "weft/backends.h"

namespace {

// Every test begins on `reference`, whatever the one before it chose: each can run alone, and in any order.
class BeginsOnReference : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo&) override { weft::set_default_backend("reference"); }
};

// The report says the CPU milliseconds of every test, with its children's and with what its suite prepared:
// scripts/test prints the dearest.
class CountsCpu : public ::testing::EmptyTestEventListener {
  static int64_t milliseconds(int who) {
    rusage used{};
    getrusage(who, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
  }
  void OnTestEnd(const ::testing::TestInfo&) override {
    const int64_t now = milliseconds(RUSAGE_SELF) + milliseconds(RUSAGE_CHILDREN);
    ::testing::Test::RecordProperty("cpu_ms", std::to_string(now - last_));
    last_ = now;
  }
  int64_t last_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  setenv("WEFT_MEASURED", "0", 1);  // measurements of this machine must not affect tests
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::UnitTest::GetInstance()->listeners().Append(new BeginsOnReference);
  ::testing::UnitTest::GetInstance()->listeners().Append(new CountsCpu);
  return RUN_ALL_TESTS();
}
