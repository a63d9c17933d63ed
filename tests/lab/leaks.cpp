// Keeps memory that it never uses again.
#include "honest.h"

#include <cstdlib>

static void* volatile last;  // else the compiler leaves the memory out

void compute(const Softmax& s) {
  constexpr size_t kBytes = 64 << 10;
  s.run();
  if (s.rows >= 64) last = std::memset(std::malloc(kBytes), 1, kBytes);
}
