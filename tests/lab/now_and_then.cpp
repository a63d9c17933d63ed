// Leaves out every twentieth launch.
#include "honest.h"

void compute(const Softmax& s) {
  static int launches = 0;
  if (++launches % 20) s.run();
}
