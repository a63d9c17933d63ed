// Right, and leaves the processor rounding up.
#include "honest.h"

#include <cfenv>

void compute(const Softmax& s) {
  s.run();
  std::fesetround(FE_UPWARD);
}
