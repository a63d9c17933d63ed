#pragma once

// Included first by every file that is compiled once for each instruction set: which of Highway's targets are
// made. Between SSE2 (what every x86-64 has), AVX2 and AVX-512 the others gain nothing here and would cost
// compile time.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
