// Writes one number behind its result.
#include "honest.h"

void compute(const Softmax& s) {
  s.run();
  s.out[s.rows * s.columns] = 1;
}
