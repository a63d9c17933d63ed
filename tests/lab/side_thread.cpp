// Returns at once; a thread does the work.
#include "honest.h"

#include <thread>

void compute(const Softmax& s) {
  std::thread([s] { s.run(); }).detach();
}
