#include "backends/native/halves.h"

#include <algorithm>

#include "backends/native/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/halves.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/halves-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::native {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

constexpr int kChains = 4;  // independent sums, which hide the latency of additions
// Rows of a that share one widened b: their sums stay in registers.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kTogether = 4;
#else
constexpr int kTogether = 2;
#endif

// R rows of a times one row of b, which is read once.
template <class Half, int R>
HWY_INLINE void dots(const float* HWY_RESTRICT a, const uint16_t* HWY_RESTRICT b, int64_t k, float* c,
                     int64_t c_row) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[R][kChains];
  for (auto& row : sum)
    for (auto& s : row) s = hn::Zero(d);
  int64_t q = 0;
  for (; q + kChains * lanes <= k; q += kChains * lanes)
    for (int u = 0; u < kChains; ++u) {
      const V y = Half::load(b + q + u * lanes);
      for (int r = 0; r < R; ++r)
        sum[r][u] = hn::MulAdd(hn::LoadU(d, a + r * k + q + u * lanes), y, sum[r][u]);
    }
  for (; q + lanes <= k; q += lanes) {
    const V y = Half::load(b + q);
    for (int r = 0; r < R; ++r) sum[r][0] = hn::MulAdd(hn::LoadU(d, a + r * k + q), y, sum[r][0]);
  }
  for (int r = 0; r < R; ++r) {
    float total =
        hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum[r][0], sum[r][1]), hn::Add(sum[r][2], sum[r][3]))));
    for (int64_t p = q; p < k; ++p) total += a[r * k + p] * Half::one(b + p);
    c[r * c_row] = total;
  }
}

template <class Half>
HWY_INLINE void all_dots(const float* a, int64_t m, const uint16_t* b, int64_t b_step, int64_t n, int64_t k,
                         float* c, int64_t c_row) {
  for (int64_t j = 0; j < n; ++j, b += b_step) {
    int64_t i = 0;
    for (; i + kTogether <= m; i += kTogether)
      dots<Half, kTogether>(a + i * k, b, k, c + i * c_row + j, c_row);
    for (; i < m; ++i) dots<Half, 1>(a + i * k, b, k, c + i * c_row + j, c_row);
  }
}
void dots_of_half(const float* a, int64_t m, const uint16_t* b, int64_t b_step, int64_t n, int64_t k,
                  float* c, int64_t c_row) {
  all_dots<Halves>(a, m, b, b_step, n, k, c, c_row);
}
void dots_of_brain(const float* a, int64_t m, const uint16_t* b, int64_t b_step, int64_t n, int64_t k,
                   float* c, int64_t c_row) {
  all_dots<Brains>(a, m, b, b_step, n, k, c, c_row);
}

template <class Half>
HWY_INLINE void all_sums(const float* a, const uint16_t* b, int64_t b_step, int64_t k, int64_t n, float* c) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + kChains * lanes <= n; j += kChains * lanes) {
    V sum[kChains];
    for (auto& s : sum) s = hn::Zero(d);
    for (int64_t p = 0; p < k; ++p) {
      const V x = hn::Set(d, a[p]);
      for (int u = 0; u < kChains; ++u)
        sum[u] = hn::MulAdd(x, Half::load(b + p * b_step + j + u * lanes), sum[u]);
    }
    for (int u = 0; u < kChains; ++u) hn::StoreU(sum[u], d, c + j + u * lanes);
  }
  for (; j + lanes <= n; j += lanes) {
    V sum = hn::Zero(d);
    for (int64_t p = 0; p < k; ++p) sum = hn::MulAdd(hn::Set(d, a[p]), Half::load(b + p * b_step + j), sum);
    hn::StoreU(sum, d, c + j);
  }
  for (; j < n; ++j) {
    float sum = 0;
    for (int64_t p = 0; p < k; ++p) sum += a[p] * Half::one(b + p * b_step + j);
    c[j] = sum;
  }
}
void sums_of_half(const float* a, const uint16_t* b, int64_t b_step, int64_t k, int64_t n, float* c) {
  all_sums<Halves>(a, b, b_step, k, n, c);
}
void sums_of_brain(const float* a, const uint16_t* b, int64_t b_step, int64_t k, int64_t n, float* c) {
  all_sums<Brains>(a, b, b_step, k, n, c);
}

}  // namespace HWY_NAMESPACE
}  // namespace weft::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::native {

HWY_EXPORT(dots_of_half);
HWY_EXPORT(dots_of_brain);
HWY_EXPORT(sums_of_half);
HWY_EXPORT(sums_of_brain);

void half_dots(Stored type, const float* a, int64_t m, const uint16_t* b, int64_t b_step, int64_t n,
               int64_t k, float* c, int64_t c_row) {
  if (type == Stored::bf16)
    HWY_DYNAMIC_DISPATCH(dots_of_brain)(a, m, b, b_step, n, k, c, c_row);
  else
    HWY_DYNAMIC_DISPATCH(dots_of_half)(a, m, b, b_step, n, k, c, c_row);
}
void half_sums(Stored type, const float* a, const uint16_t* b, int64_t b_step, int64_t k, int64_t n,
               float* c) {
  if (type == Stored::bf16)
    HWY_DYNAMIC_DISPATCH(sums_of_brain)(a, b, b_step, k, n, c);
  else
    HWY_DYNAMIC_DISPATCH(sums_of_half)(a, b, b_step, k, n, c);
}

}  // namespace weft::native
#endif
