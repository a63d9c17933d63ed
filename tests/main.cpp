#include <gtest/gtest.h>

#include <cstdlib>

#include "weft/backends.h"

// Every test begins on `reference`, whatever the one before it chose: each can run alone, and in any order.
namespace {

class BeginsOnReference : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { weft::set_default_backend("reference"); }
};

}  // namespace

int main(int argc, char** argv) {
  setenv("WEFT_MEASURED", "0", 1);  // measurements of this machine must not affect tests
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new BeginsOnReference);
  return RUN_ALL_TESTS();
}
