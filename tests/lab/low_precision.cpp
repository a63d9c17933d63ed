// Rounds to bf16 on the way.
#include "honest.h"

void compute(const Softmax& s) {
  s.run();
  for (int64_t i = 0; i < s.rows * s.columns; ++i) {
    uint32_t bits;
    std::memcpy(&bits, s.out + i, 4);
    bits = (bits + 0x8000) & 0xffff0000;
    std::memcpy(s.out + i, &bits, 4);
  }
}
