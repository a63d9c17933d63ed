// Right, and uses 32 MB in large launches, which it gives back.
#include "honest.h"

#include <cstdlib>

static void* volatile last;  // else the compiler leaves the memory out

void compute(const Softmax& s) {
  constexpr size_t kBytes = 32 << 20;
  s.run();
  if (s.rows < 64) return;
  last = std::memset(std::malloc(kBytes), 1, kBytes);
  std::free(last);
}
