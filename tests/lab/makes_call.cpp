// Right, and makes the system call whose number is in WEFT_TEST_CALL.
#include "honest.h"

#include <unistd.h>

#include <cstdlib>

void compute(const Softmax& s) {
  s.run();
  syscall(std::atol(std::getenv("WEFT_TEST_CALL")), -1, -1, -1, -1);
}
