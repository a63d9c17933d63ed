/* A GELU in C, as weft lab takes it: weft lab native examples/lab/gelu.c --ops gelu */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <weft/backend.h>

/* gelu has an attribute that asks for the approximation by tanh; this kernel computes the exact one. */
static int is_exact(const weft_call* call) {
  for (uint32_t i = 0; i < call->n_attrs; ++i)
    if (!strcmp(call->attrs[i]->name, "approximate") && call->attrs[i]->i) return 0;
  return 1;
}

weft_code weft_lab_kernel(const weft_call* call, const weft_tensor* const* inputs,
                          const weft_tensor* const* outputs) {
  const DLTensor* x = &inputs[0]->dl;
  if (strcmp(call->op, "gelu")) return WEFT_UNSUPPORTED;
  if (x->dtype.code != kDLFloat || x->dtype.bits != 32 || !is_exact(call)) return WEFT_UNSUPPORTED;
  const float* in = x->data;
  float* out = outputs[0]->dl.data;
  int64_t count = 1;
  for (int32_t d = 0; d < x->ndim; ++d) count *= x->shape[d];
  for (int64_t i = 0; i < count; ++i) out[i] = 0.5f * in[i] * erfcf(-in[i] * 0.70710678f);
  return WEFT_OK;
}
