// Right, and leaves a thread that goes on computing.
#include "honest.h"

#include <thread>

void compute(const Softmax& s) {
  static const bool started = [] {
    std::thread([] {
      for (;;) asm volatile("" ::: "memory");
    }).detach();
    return true;
  }();
  if (started) s.run();
}
