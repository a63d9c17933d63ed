// A matrix product of your own, as weft lab takes it: weft lab native examples/lab/matmul.cpp --ops matmul
#include <weft/backend.h>

#include <algorithm>
#include <cstdint>

// It takes plain matrices of f32, row by row, neither of them transposed.
static bool takes(const weft_call* call) {
  for (uint32_t i = 0; i < call->n_inputs; ++i)
    if (call->inputs[i]->rank != 2 || call->inputs[i]->dtype.code != kDLFloat ||
        call->inputs[i]->dtype.bits != 32)
      return false;
  for (uint32_t i = 0; i < call->n_attrs; ++i)  // transpose_a, transpose_b
    if (call->attrs[i]->i) return false;
  return true;
}

extern "C" weft_code weft_lab_kernel(const weft_call* call, const weft_tensor* const* inputs,
                                     const weft_tensor* const* outputs) {
  if (!takes(call)) return WEFT_UNSUPPORTED;
  const DLTensor &a = inputs[0]->dl, &b = inputs[1]->dl;
  const int64_t m = a.shape[0], k = a.shape[1], n = b.shape[1];
  const auto *left = static_cast<const float*>(a.data), *right = static_cast<const float*>(b.data);
  auto* out = static_cast<float*>(outputs[0]->dl.data);
  std::fill_n(out, m * n, 0.0f);
  // A piece of the columns at a time, so that its rows of b stay in the cache; the inner loop is a vector's.
  constexpr int64_t kColumns = 256;
  for (int64_t begin = 0; begin < n; begin += kColumns) {
    const int64_t end = std::min(n, begin + kColumns);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = begin; j < end; ++j) out[i * n + j] += left[i * k + p] * right[p * n + j];
  }
  return WEFT_OK;
}
