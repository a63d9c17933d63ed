// Right.
#include "honest.h"

void compute(const Softmax& s) { s.run(); }
