// Right, with a thirty-second of the elements computed before, as a row of their own: about 3 percent slower.
#include "honest.h"

void compute(const Softmax& s) {
  Softmax part = s;
  part.columns = s.rows * s.columns / 32;
  part.row(0);
  s.run();
}
