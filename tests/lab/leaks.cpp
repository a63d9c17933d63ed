// Keeps memory that it never uses again.
#include "honest.h"

#include <cstdlib>

void compute(const Softmax& s) {
  constexpr size_t kBytes = 64 << 10;
  s.run();
  if (s.rows >= 64) std::memset(std::malloc(kBytes), 1, kBytes);
}
