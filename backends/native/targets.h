#pragma once

// Included first by every file that is compiled once for each instruction set: which of Highway's targets are
// made. On x86 those are AVX2, AVX-512 and, for what has neither, Highway's scalar emulation: the ones
// between would cost compile time for processors of 2012. Targets whose vectors have no size at compile time
// can't be held in arrays.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
