// Prints without an end.
#include "honest.h"

#include <cstdio>

void compute(const Softmax& s) {
  s.run();
  for (;;) std::puts("a kernel that talks");
}
