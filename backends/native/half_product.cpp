#include "backends/native/half_product.h"

#include "backends/native/scratch.h"
#include "backends/native/spread.h"
#include "backends/native/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/half_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace weft::native {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;

#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kDotRows = 4;  // sums of so many rows, four vectors each, stay in registers
#else
constexpr int kDotRows = 2;
#endif

struct Brain {
  static HWY_INLINE hn::Vec<F> load(const uint16_t* from) {
    const F d;
    const hn::Rebind<uint32_t, F> du;
    const hn::Rebind<uint16_t, F> dh;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(dh, from))));
  }
};
struct Half {
  static HWY_INLINE hn::Vec<F> load(const uint16_t* from) {
    const hn::Rebind<hwy::float16_t, F> dh;
    return hn::PromoteTo(F(), hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from)));
  }
};

// R rows of x against one row of w. Each sum is made in the same order whatever R is. What is left of k after
// whole vectors lies widened in `rest`.
template <class Type, int R>
HWY_INLINE void dots(const float* x, int64_t x_row, const uint16_t* HWY_RESTRICT w, int64_t k,
                     const float* rest, float* to) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<F> sum[R][4];
  for (auto& row : sum)
    for (auto& s : row) s = hn::Zero(d);
  int64_t q = 0;
  for (; q + 4 * lanes <= k; q += 4 * lanes)
    for (int u = 0; u < 4; ++u) {
      const auto y = Type::load(w + q + u * lanes);
      for (int r = 0; r < R; ++r)
        sum[r][u] = hn::MulAdd(hn::LoadU(d, x + r * x_row + q + u * lanes), y, sum[r][u]);
    }
  for (; q + lanes <= k; q += lanes) {
    const auto y = Type::load(w + q);
    for (int r = 0; r < R; ++r) sum[r][0] = hn::MulAdd(hn::LoadU(d, x + r * x_row + q), y, sum[r][0]);
  }
  for (int r = 0; r < R; ++r) {
    to[r] =
        hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum[r][0], sum[r][1]), hn::Add(sum[r][2], sum[r][3]))));
    for (int64_t i = q; i < k; ++i) to[r] += x[r * x_row + i] * rest[i - q];
  }
}

// Columns [begin, end) of c, in f32 with rows of `c_row`: x is a, widened, in rows of k.
template <class Type>
void columns(const HalfProduct& p, const float* x, int64_t begin, int64_t end, float* c, int64_t c_row) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  const int64_t whole = p.k / lanes * lanes;
  float rest[HWY_MAX_BYTES / sizeof(float)], made[kDotRows];
  for (int64_t j = begin; j < end; ++j) {
    const uint16_t* w = p.b + j * p.b_column;
    widen(p.type, w + whole, rest, p.k - whole);
    float start = 0;
    if (p.start) widen(p.type, p.start + j, &start, 1);
    for (int64_t i = 0, rows; i < p.m; i += rows) {
      rows = kDotRows == 4 && p.m - i >= 4 ? 4 : p.m - i >= 2 ? 2 : 1;
      const float* from = x + i * p.k;
      if (rows == 4) dots<Type, kDotRows>(from, p.k, w, p.k, rest, made);
      if (rows == 2) dots<Type, 2>(from, p.k, w, p.k, rest, made);
      if (rows == 1) dots<Type, 1>(from, p.k, w, p.k, rest, made);
      for (int64_t r = 0; r < rows; ++r) c[(i + r) * c_row + j - begin] = start + made[r];
    }
  }
}
void brain_columns(const HalfProduct& p, const float* x, int64_t begin, int64_t end, float* c,
                   int64_t c_row) {
  columns<Brain>(p, x, begin, end, c, c_row);
}
void half_columns(const HalfProduct& p, const float* x, int64_t begin, int64_t end, float* c, int64_t c_row) {
  columns<Half>(p, x, begin, end, c, c_row);
}

}  // namespace HWY_NAMESPACE
}  // namespace weft::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::native {

HWY_EXPORT(brain_columns);
HWY_EXPORT(half_columns);

namespace {

constexpr int64_t kFewRows = 8;
constexpr int64_t kDotColumns = 64;             // of c that are made before they are rounded
constexpr int64_t kWidened = int64_t{1} << 20;  // elements of b that are widened at a time
constexpr int64_t kRowsAtOnce = 512;
constexpr int64_t kElementsAThread = 1 << 14;

/// A thread at a time: what a Host does, on this thread alone.
struct Alone {
  template <class F>
  void parallel_for(int64_t n, int64_t, F body) const {
    body(0, n);
  }
};

// The f32 product is spread where threads are to be had.
void make(const backend::Host& host, const Product<float>& p) {
  multiply_all<float>(host, 1, p, [&](int64_t) { return p; });
}
void make(const Alone&, const Product<float>& p) { multiply(p); }

// Rows of an operand, `count` of `length` elements, `step` apart in memory.
template <class H>
void widen_rows(const H& host, Stored type, const uint16_t* from, int64_t step, int64_t count, int64_t length,
                float* to) {
  host.parallel_for(count, std::max<int64_t>(1, kElementsAThread / std::max<int64_t>(1, length)),
                    [=](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i)
                        widen(type, from + i * step, to + i * length, length);
                    });
}

// a as it lies: in rows of k, or transposed in rows of m.
template <class H>
const float* widened_a(const H& host, const HalfProduct& p) {
  auto* x = scratch<float>(Scratch::rows, p.m * p.k);
  const bool rows = p.a_column == 1;
  widen_rows(host, p.type, p.a, rows ? p.a_row : p.a_column, rows ? p.m : p.k, rows ? p.k : p.m, x);
  return x;
}

template <class H>
void few_rows(const H& host, const HalfProduct& p) {
  const float* x = widened_a(host, p);
  const int64_t pieces = (p.n + kDotColumns - 1) / kDotColumns;
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 17) / std::max<int64_t>(1, kDotColumns * p.k));
  host.parallel_for(pieces, grain, [&](int64_t begin, int64_t end) {
    float c[kFewRows * kDotColumns];
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t j0 = piece * kDotColumns, j1 = std::min(p.n, j0 + kDotColumns);
      if (p.type == Stored::bf16)
        HWY_DYNAMIC_DISPATCH(brain_columns)(p, x, j0, j1, c, kDotColumns);
      else
        HWY_DYNAMIC_DISPATCH(half_columns)(p, x, j0, j1, c, kDotColumns);
      for (int64_t i = 0; i < p.m; ++i) narrow(p.type, c + i * kDotColumns, p.c + i * p.n + j0, j1 - j0);
    }
  });
}

// Columns [j, j + n) of b, widened: in rows of n, or transposed in rows of k.
template <class H>
void many_rows(const H& host, const HalfProduct& p) {
  const float* x = widened_a(host, p);
  const bool turned = p.b_column != 1;
  const int64_t step = std::clamp<int64_t>(kWidened / std::max<int64_t>(1, p.k) / 64 * 64, 64,
                                           std::max<int64_t>(64, p.n)),
                rows = std::min(p.m, kRowsAtOnce);
  auto* b = scratch<float>(Scratch::columns, std::min(step, p.n) * p.k);
  auto* c = scratch<float>(Scratch::scores, rows * std::min(step, p.n) + p.n);
  float* start = c + rows * std::min(step, p.n);
  if (p.start) widen(p.type, p.start, start, p.n);
  for (int64_t j = 0; j < p.n; j += step) {
    const int64_t n = std::min(step, p.n - j);
    widen_rows(host, p.type, p.b + j * p.b_column, turned ? p.b_column : p.b_row, turned ? n : p.k,
               turned ? p.k : n, b);
    for (int64_t i = 0; i < p.m; i += rows) {
      Product<float> part{.m = std::min(rows, p.m - i), .n = n, .k = p.k, .b = b, .c = c, .c_row = n};
      part.a_row = p.a_column == 1 ? p.k : 1, part.a_column = p.a_column == 1 ? 1 : p.m;
      part.a = x + i * part.a_row;
      part.b_row = turned ? 1 : n, part.b_column = turned ? p.k : 1;
      if (p.start) part.start = start + j;
      make(host, part);
      host.parallel_for(part.m, std::max<int64_t>(1, kElementsAThread / n), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) narrow(p.type, c + r * n, p.c + (i + r) * p.n + j, n);
      });
    }
  }
}

template <class H>
void any_rows(const H& host, const HalfProduct& p) {
  if (p.m == 0 || p.n == 0) return;
  const bool dots = p.m <= kFewRows && p.b_row == 1 && p.b_column != 1 && p.a_column == 1;
  dots ? few_rows(host, p) : many_rows(host, p);
}

}  // namespace

void multiply_halves(const backend::Host& host, const HalfProduct& p) { any_rows(host, p); }
void multiply_halves(const HalfProduct& p) { any_rows(Alone(), p); }

}  // namespace weft::native
#endif
