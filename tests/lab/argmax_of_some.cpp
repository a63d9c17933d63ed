// argmax along the last axis that leaves out the last row of many.
#include <weft/backend.h>

#include <cstring>

extern "C" weft_code weft_lab_kernel(const weft_call* call, const weft_tensor* const* inputs,
                                     const weft_tensor* const* outputs) {
  const DLTensor &x = inputs[0]->dl, &y = outputs[0]->dl;
  if (x.ndim != 2 || x.dtype.bits != 32 || y.ndim != 1 || y.dtype.bits != 32) return WEFT_UNSUPPORTED;
  for (uint32_t i = 0; i < call->n_attrs; ++i)
    if (!std::strcmp(call->attrs[i]->name, "axis") && call->attrs[i]->i != -1 && call->attrs[i]->i != 1)
      return WEFT_UNSUPPORTED;
  const int64_t rows = x.shape[0], columns = x.shape[1];
  for (int64_t r = 0; r < rows - (rows > 1000); ++r) {
    const float* row = static_cast<const float*>(x.data) + r * columns;
    int64_t best = 0;
    for (int64_t c = 1; c < columns; ++c)
      if (row[c] > row[best] || (row[c] != row[c] && row[best] == row[best])) best = c;
    static_cast<int32_t*>(y.data)[r] = static_cast<int32_t>(best);
  }
  return WEFT_OK;
}
