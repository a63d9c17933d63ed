#pragma once
#include "seam/builtin.h"

// The provider that renders: a primitive op, or a region of elementwise steps, becomes a loop kernel, its
// text in the device's dialect, and a function that the device's backend compiled from it.
namespace weft::loops {

/// Serves every device whose backend offers compile and dispatch, and whose dialect is known. Kernel ids are
/// "loops.<op>.<form>".
extern const seam::Provider provider;

/// How many different texts this process has rendered for devices so far.
uint64_t distinct_texts();
/// What was compiled: each text once for each opened device, alone or in a program of many, where kernels
/// were prepared together (seam::Together).
struct Compilations {
  uint64_t programs = 0, texts = 0;
};
Compilations compilations();

/// The body of an elementwise call as statements of `dialect`: they read the registers in0, in1, ... and
/// assign to out0, out1, ..., which the surrounding text declares. Gives the length and writes at most
/// `capacity` bytes with a zero at the end; 0 = refused, and the error says why. This is weft_host.render.
uint64_t render(const weft_call* call, const char* dialect, char* text, uint64_t capacity, weft_error* error);

}  // namespace weft::loops
