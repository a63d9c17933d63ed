#include "backends/native/rows.h"

#include <algorithm>
#include <cmath>

#include "backends/native/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::native {
namespace HWY_NAMESPACE {

constexpr int64_t kChunk = 1024;  // elements summed in f32 before the sum goes to a double

// The last elements of a row, padded with `rest`.
// Only hardware masks keep an access inside the row; elsewhere Highway reads and writes whole vectors, and
// the next row may be another thread's.
HWY_INLINE VF load_part(const float* x, int64_t n, float rest) {
  const F d;
#if HWY_TARGET <= HWY_AVX2
  const auto mask = hn::FirstN(d, static_cast<size_t>(n));
  return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, x), set(rest));
#else
  HWY_ALIGN float part[HWY_MAX_BYTES / sizeof(float)];
  std::fill(std::copy_n(x, n, part), std::end(part), rest);
  return hn::Load(d, part);
#endif
}
HWY_INLINE void store_part(VF v, float* y, int64_t n) {
  const F d;
#if HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(n)), d, y);
#else
  HWY_ALIGN float part[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, part);
  std::copy_n(part, n, y);
#endif
}

// Sum over i of terms(i, count): the vector of `count` terms from i, then zeros.
template <class Terms>
HWY_INLINE double sum_of(int64_t n, Terms terms) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t end = std::min(n, begin + kChunk);
    VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    int64_t i = begin;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      s0 = hn::Add(s0, terms(i, lanes)), s1 = hn::Add(s1, terms(i + lanes, lanes));
      s2 = hn::Add(s2, terms(i + 2 * lanes, lanes)), s3 = hn::Add(s3, terms(i + 3 * lanes, lanes));
    }
    for (; i < end; i += lanes) s0 = hn::Add(s0, terms(i, std::min(lanes, end - i)));
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)))));
  }
  return total;
}
HWY_INLINE VF at(const float* x, int64_t i, int64_t count, float rest = 0) {
  const F d;
  return count == static_cast<int64_t>(hn::Lanes(d)) ? hn::LoadU(d, x + i) : load_part(x + i, count, rest);
}

HWY_INLINE void put(VF v, float* y, int64_t count) {
  const F d;
  if (count == static_cast<int64_t>(hn::Lanes(d)))
    hn::StoreU(v, d, y);
  else
    store_part(v, y, count);
}

double row_sum(const float* x, int64_t n) {
  return sum_of(n, [=](int64_t i, int64_t count) HWY_ATTR { return at(x, i, count); });
}
double row_squares(const float* x, float shift, int64_t n) {
  return sum_of(n, [=](int64_t i, int64_t count) HWY_ATTR {
    const VF v = hn::Sub(at(x, i, count, shift), set(shift));
    return hn::Mul(v, v);
  });
}
double row_dot(const float* x, const float* y, int64_t n) {
  return sum_of(n,
                [=](int64_t i, int64_t count) HWY_ATTR { return hn::Mul(at(x, i, count), at(y, i, count)); });
}
double row_exp(const float* x, float shift, float* y, int64_t n) {
  const F d;
  return sum_of(n, [=](int64_t i, int64_t count) HWY_ATTR {
    const VF e = exp(hn::Sub(at(x, i, count, -HUGE_VALF), set(shift)));
    if (y == nullptr) return e;
    if (count == static_cast<int64_t>(hn::Lanes(d))) {
      hn::StoreU(e, d, y + i);
    } else {
      store_part(e, y + i, count);
    }
    return e;
  });
}
float row_max(const float* x, int64_t n) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  VF m = set(-HUGE_VALF), odd = hn::Zero(d);  // x - x is NaN for NaN, and for infinities
  for (int64_t i = 0; i < n; i += lanes) {
    const VF v = at(x, i, std::min(lanes, n - i), -HUGE_VALF);
    m = hn::Max(m, hn::IfThenElse(hn::Eq(v, v), v, m));
    odd = hn::Or(odd, hn::IfThenZeroElse(hn::Eq(v, v), v));
  }
  if (!hn::AllTrue(d, hn::Eq(odd, odd))) return NAN;
  return hn::GetLane(hn::MaxOfLanes(d, m));
}

void row_affine(const float* x, float shift, float scale, const float* weight, const float* bias, float* y,
                int64_t n) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t count = std::min(lanes, n - i);
    VF v = hn::Mul(hn::Sub(at(x, i, count), set(shift)), set(scale));
    if (weight) v = hn::Mul(v, at(weight, i, count));
    if (bias) v = hn::Add(v, at(bias, i, count));
    if (count == lanes) {
      hn::StoreU(v, d, y + i);
    } else {
      store_part(v, y + i, count);
    }
  }
}
void row_add_to(float* to, const float* x, int64_t n) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, x + i)), d, to + i);
  for (; i < n; ++i) to[i] += x[i];
}
void row_max_to(float* to, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = x[i] > to[i] || x[i] != x[i] ? x[i] : to[i];
}

// A vector of columns at a time. Columns come in whole vectors.
void columns_softmax(float* scores, int64_t keys, int64_t columns, float* most, float* total, float* factor) {
  const F d;
  for (int64_t c = 0; c < columns; c += static_cast<int64_t>(hn::Lanes(d))) {
    const VF before = hn::LoadU(d, most + c);
    VF m = before;
    for (int64_t j = 0; j < keys; ++j) {
      const VF x = hn::LoadU(d, scores + j * columns + c);
      m = hn::IfThenElse(hn::Le(x, m), m, x);  // a NaN may get lost here: the sum keeps it
    }
    const VF shift = hn::IfThenElse(hn::Eq(m, set(-HUGE_VALF)), hn::Zero(d), m);  // nothing seen yet
    VF sum = hn::Zero(d);
    for (int64_t j = 0; j < keys; ++j) {
      const VF e = exp(hn::Sub(hn::LoadU(d, scores + j * columns + c), shift));
      hn::StoreU(e, d, scores + j * columns + c);
      sum = hn::Add(sum, e);
    }
    const VF f = exp(hn::Sub(before, shift));
    hn::StoreU(f, d, factor + c);
    hn::StoreU(m, d, most + c);
    hn::StoreU(hn::MulAdd(hn::LoadU(d, total + c), f, sum), d, total + c);
  }
}
void columns_slopes(float* scores, float* slopes, int64_t keys, int64_t columns, const float* lse,
                    const float* sum, float scale) {
  const F d;
  for (int64_t j = 0; j < keys; ++j)
    for (int64_t c = 0; c < columns; c += static_cast<int64_t>(hn::Lanes(d))) {
      float *w = scores + j * columns + c, *s = slopes + j * columns + c;
      const VF e = exp(hn::Sub(hn::LoadU(d, w), hn::LoadU(d, lse + c)));
      hn::StoreU(e, d, w);
      hn::StoreU(hn::Mul(hn::Mul(e, hn::Sub(hn::LoadU(d, s), hn::LoadU(d, sum + c))), set(scale)), d, s);
    }
}

constexpr float kHalfRoot = 0.70710678118654752f, kGeluScale = 0.79788456080286536f, kGeluCube = 0.044715f;

template <bool kApproximate>
HWY_INLINE VF symmetric_cdf(VF x) {
  if constexpr (!kApproximate) return erf(hn::Mul(x, set(kHalfRoot)));
  const VF inner = hn::MulAdd(hn::Mul(x, x), set(kGeluCube), set(1.0f));
  return tanh(hn::Mul(hn::Mul(x, inner), set(kGeluScale)));
}
template <bool kApproximate>
void each_gelu(const float* x, float* y, int64_t n) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t count = std::min(lanes, n - i);
    const VF v = at(x, i, count);
    put(hn::Mul(hn::Mul(v, set(0.5f)), hn::Add(symmetric_cdf<kApproximate>(v), set(1.0f))), y + i, count);
  }
}
void row_gelu(const float* x, bool approximate, float* y, int64_t n) {
  approximate ? each_gelu<true>(x, y, n) : each_gelu<false>(x, y, n);
}
template <bool kApproximate>
void each_gelu_grad(const float* x, const float* dy, float* dx, int64_t n) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t count = std::min(lanes, n - i);
    const VF v = at(x, i, count), near = hn::Min(hn::Max(v, set(-40.0f)), set(40.0f)),
             square = hn::Mul(near, near);
    const VF s = symmetric_cdf<kApproximate>(near);
    VF slope;
    if constexpr (kApproximate)
      slope = hn::Mul(hn::NegMulAdd(s, s, set(1.0f)), hn::MulAdd(square, set(3 * kGeluCube), set(1.0f)));
    else
      slope = exp(hn::Mul(square, set(-0.5f)));
    const VF twice = hn::MulAdd(v, hn::Mul(slope, set(kGeluScale)), hn::Add(s, set(1.0f)));
    put(hn::Mul(at(dy, i, count), hn::Mul(twice, set(0.5f))), dx + i, count);
  }
}
void row_gelu_grad(const float* x, const float* dy, bool approximate, float* dx, int64_t n) {
  approximate ? each_gelu_grad<true>(x, dy, dx, n) : each_gelu_grad<false>(x, dy, dx, n);
}

HWY_INLINE VF normed(const NormedRow& r, int64_t i, int64_t count) {
  return hn::Mul(hn::Sub(at(r.x, i, count, r.mean), set(r.mean)), set(r.scale));
}
HWY_INLINE VF weighted(const NormedRow& r, int64_t i, int64_t count) {
  const VF dy = at(r.dy, i, count);
  return r.weight ? hn::Mul(dy, at(r.weight, i, count)) : dy;
}
NormSums row_norm_sums(const NormedRow& r, int64_t n) {
  const double slope = sum_of(n, [&](int64_t i, int64_t count) HWY_ATTR { return weighted(r, i, count); });
  const double along = sum_of(n, [&](int64_t i, int64_t count) HWY_ATTR {
    return hn::Mul(weighted(r, i, count), normed(r, i, count));
  });
  return {slope, along};
}
void row_norm_grad(const NormedRow& r, float slope, float along, float* dx, bool adds, float* dweight,
                   float* dbias, int64_t n) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t count = std::min(lanes, n - i);
    const VF h = normed(r, i, count), dy = at(r.dy, i, count);
    const VF rest = hn::NegMulAdd(h, set(along), hn::Sub(weighted(r, i, count), set(slope)));
    const VF slope_of_x = hn::Mul(set(r.scale), rest);
    put(adds ? hn::Add(at(dx, i, count), slope_of_x) : slope_of_x, dx + i, count);
    put(hn::MulAdd(dy, h, at(dweight, i, count)), dweight + i, count);
    if (dbias) put(hn::Add(dy, at(dbias, i, count)), dbias + i, count);
  }
}

void row_adamw(const AdamwFactors& f, float* parameter, const float* gradient, float* mean, float* square,
               int64_t n) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t count = std::min(lanes, n - i);
    const VF g = at(gradient, i, count);
    const VF m = hn::Add(hn::Mul(at(mean, i, count), set(f.beta1)), hn::Mul(g, set(f.rest1)));
    const VF v = hn::Add(hn::Mul(at(square, i, count), set(f.beta2)), hn::Mul(hn::Mul(g, g), set(f.rest2)));
    const VF below = hn::Add(hn::Sqrt(hn::Mul(v, set(f.square_scale))), set(f.epsilon));
    const VF step = hn::Mul(set(f.rate), hn::Div(hn::Mul(m, set(f.mean_scale)), below));
    const VF p = hn::Sub(hn::Mul(at(parameter, i, count), set(f.decay)), step);
    if (count == lanes) {
      hn::StoreU(m, d, mean + i), hn::StoreU(v, d, square + i), hn::StoreU(p, d, parameter + i);
    } else {
      store_part(m, mean + i, count), store_part(v, square + i, count), store_part(p, parameter + i, count);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace weft::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::native {

HWY_EXPORT(row_sum);
HWY_EXPORT(row_squares);
HWY_EXPORT(row_dot);
HWY_EXPORT(row_exp);
HWY_EXPORT(row_max);
HWY_EXPORT(row_affine);
HWY_EXPORT(row_add_to);
HWY_EXPORT(row_max_to);
HWY_EXPORT(columns_softmax);
HWY_EXPORT(columns_slopes);
HWY_EXPORT(row_gelu);
HWY_EXPORT(row_gelu_grad);
HWY_EXPORT(row_norm_sums);
HWY_EXPORT(row_norm_grad);
HWY_EXPORT(row_adamw);

double sum(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(row_sum)(x, n); }
float max(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(row_max)(x, n); }
double sum_of_squares(const float* x, float shift, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(row_squares)(x, shift, n);
}
double dot(const float* x, const float* y, int64_t n) { return HWY_DYNAMIC_DISPATCH(row_dot)(x, y, n); }
double exp_of_row(const float* x, float shift, float* y, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(row_exp)(x, shift, y, n);
}
void affine(const float* x, float shift, float scale, const float* weight, const float* bias, float* y,
            int64_t n) {
  HWY_DYNAMIC_DISPATCH(row_affine)(x, shift, scale, weight, bias, y, n);
}
void gelu(const float* x, bool approximate, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(row_gelu)(x, approximate, y, n);
}
void gelu_grad(const float* x, const float* dy, bool approximate, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(row_gelu_grad)(x, dy, approximate, dx, n);
}
void add_to(float* to, const float* x, int64_t n) { HWY_DYNAMIC_DISPATCH(row_add_to)(to, x, n); }
void max_to(float* to, const float* x, int64_t n) { HWY_DYNAMIC_DISPATCH(row_max_to)(to, x, n); }
void softmax_columns(float* scores, int64_t keys, int64_t columns, float* most, float* total, float* factor) {
  HWY_DYNAMIC_DISPATCH(columns_softmax)(scores, keys, columns, most, total, factor);
}
void softmax_slopes(float* scores, float* slopes, int64_t keys, int64_t columns, const float* lse,
                    const float* sum, float scale) {
  HWY_DYNAMIC_DISPATCH(columns_slopes)(scores, slopes, keys, columns, lse, sum, scale);
}
NormSums norm_sums(const NormedRow& r, int64_t n) { return HWY_DYNAMIC_DISPATCH(row_norm_sums)(r, n); }
void norm_grad(const NormedRow& r, float slope, float along, float* dx, bool adds, float* dweight,
               float* dbias, int64_t n) {
  HWY_DYNAMIC_DISPATCH(row_norm_grad)(r, slope, along, dx, adds, dweight, dbias, n);
}
void adamw(const AdamwFactors& f, float* parameter, const float* gradient, float* mean, float* square,
           int64_t n) {
  HWY_DYNAMIC_DISPATCH(row_adamw)(f, parameter, gradient, mean, square, n);
}

}  // namespace weft::native
#endif
