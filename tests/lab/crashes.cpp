// Reads where nothing is.
#include "honest.h"

void compute(const Softmax& s) { s.out[0] = *reinterpret_cast<volatile float*>(8); }
