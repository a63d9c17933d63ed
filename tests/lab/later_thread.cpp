// Right; in later processes than the first a thread goes on computing.
#include "honest.h"

#define compute compute_beside
#include "background_thread.cpp"
#undef compute

#include <cstdlib>

void compute(const Softmax& s) {
  static const bool later = std::atoi(std::getenv("WEFT_TEST_PROCESS")) > 1;
  later ? compute_beside(s) : s.run();
}
