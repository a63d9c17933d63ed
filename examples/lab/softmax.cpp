// A softmax of your own, as weft lab takes it: weft lab native examples/lab/softmax.cpp --ops softmax
#include <weft/backend.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

static int64_t axis_of(const weft_call* call) {
  for (uint32_t i = 0; i < call->n_attrs; ++i)
    if (!__builtin_strcmp(call->attrs[i]->name, "axis")) return call->attrs[i]->i;
  return -1;
}

extern "C" weft_code weft_lab_kernel(const weft_call* call, const weft_tensor* const* inputs,
                                     const weft_tensor* const* outputs) {
  const DLTensor &x = inputs[0]->dl, &y = outputs[0]->dl;
  const int64_t axis = axis_of(call);
  if (__builtin_strcmp(call->op, "softmax")) return WEFT_UNSUPPORTED;
  if (x.dtype.code != kDLFloat || x.dtype.bits != 32 || x.ndim == 0) return WEFT_UNSUPPORTED;
  if (axis != -1 && axis != x.ndim - 1) return WEFT_UNSUPPORTED;
  const int64_t columns = x.shape[x.ndim - 1];
  int64_t rows = 1;
  for (int32_t d = 0; d + 1 < x.ndim; ++d) rows *= x.shape[d];
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = static_cast<const float*>(x.data) + r * columns;
    float* out = static_cast<float*>(y.data) + r * columns;
    const float most = columns ? *std::max_element(in, in + columns) : 0;
    float sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - most);
    for (int64_t c = 0; c < columns; ++c) out[c] /= sum;
  }
  return WEFT_OK;
}
