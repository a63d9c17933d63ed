// Right in the first process; in later ones it computes the rows that have changed.
#include "honest.h"

#define compute compute_changed
#include "changed_rows.cpp"
#undef compute

#include <cstdlib>

void compute(const Softmax& s) {
  static const bool later = std::atoi(std::getenv("WEFT_TEST_PROCESS")) > 1;
  later ? compute_changed(s) : s.run();
}
