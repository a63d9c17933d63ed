#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "peak_memory.h"

namespace weft::testing::training_memory_test {
namespace {

// A compiled step has its own planned memory, and a copy of the model.
TEST(TrainingMemory, CompiledStepsTakeLittleMoreThanEagerOnes) {
  const auto folder = std::filesystem::temp_directory_path() / ("weft_memory_" + std::to_string(::getpid()));
  const auto peak = [&](const char* how) {
    std::filesystem::create_directory(folder);
    std::vector<std::string> words = {"train", "--data", WEFT_SOURCE_DIR "/docs", "--out", folder / "run"};
    for (const char* more : {"--layers", "4", "--heads", "4", "--width", "256", "--context", "128", "--batch",
                             "12", "--steps", "2", "--sample-every", "0", "--backend", "native"})
      words.emplace_back(more);
    if (*how) words.emplace_back(how);
    const int64_t bytes = peak_memory(words, folder / "out");
    std::filesystem::remove_all(folder);
    return static_cast<double>(bytes) * 1e-6;
  };
  const double eager = peak(""), compiled = peak("--compile");
  EXPECT_LE(compiled, 1.1 * eager);
  std::printf("[memory] training: %.0f MB eager, %.0f MB compiled\n", eager, compiled);
}

}  // namespace
}  // namespace weft::testing::training_memory_test
