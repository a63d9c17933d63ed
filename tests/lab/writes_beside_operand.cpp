// Writes one number before its operand.
#include "honest.h"

void compute(const Softmax& s) {
  s.run();
  const_cast<float*>(s.in)[-1] = 1;
}
