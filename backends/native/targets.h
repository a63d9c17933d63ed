#pragma once

// Included first by every file that is compiled once for each instruction set; selects Highway's targets. On
// x86: AVX2, AVX-512 and, for older CPUs, Highway's scalar emulation; the targets between would cost compile
// time for CPUs of 2012. Targets whose vectors have no compile-time size can't be held in arrays.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
