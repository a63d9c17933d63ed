#include "backends/native/int8_tiles.h"

#include <algorithm>
#include <cstring>

#include "backends/native/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/int8_tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace weft::native {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

namespace int8 {

// The sums that fit the registers: each step takes two vectors of 16-bit numbers for a vector of b, and two
// for a row of a.
#if HWY_TARGET == HWY_SCALAR
constexpr int kRows = 4, kVectors = 8;
#elif HWY_TARGET <= HWY_AVX3
constexpr int kRows = 8, kVectors = 3;
#else
constexpr int kRows = 4, kVectors = 2;
#endif

using Wide = hn::ScalableTag<int32_t>;

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(Wide())); }
HWY_INLINE int64_t width() { return kVectors * lanes(); }

HWY_INLINE int32_t quad_at(const void* from) {
  int32_t quad;
  std::memcpy(&quad, from, 4);
  return quad;
}

#if HWY_TARGET == HWY_SCALAR
// A vector is one number, and has no pairs.
void multiply(const int8_t* a, const uint8_t* b, int64_t quads, int64_t rows, int64_t columns, int32_t* to) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      uint32_t sum = 0;
      for (int64_t q = 0; q < quads; ++q)
        for (int64_t e = 0; e < 4; ++e)
          sum += static_cast<uint32_t>(a[4 * (q * kRows + i) + e] * b[4 * (q * width() + j) + e]);
      to[i * width() + j] = static_cast<int32_t>(sum);
    }
}
int32_t dot(const int8_t* x, const int8_t* y, int64_t k) {
  int32_t total = 0;
  for (int64_t q = 0; q < k; ++q) total += x[q] * y[q];
  return total;
}
#else

using Pairs = hn::ScalableTag<int16_t>;
using Sum = hn::Vec<Wide>;
using Pair = hn::Vec<Pairs>;

// Elements 0 and 2, and 1 and 3, of each quad as 16 bits.
struct Halved {
  Pair even, odd;
};
HWY_INLINE Halved with_sign(Pair quads) {
  return {hn::ShiftRight<8>(hn::ShiftLeft<8>(quads)), hn::ShiftRight<8>(quads)};
}
HWY_INLINE Halved without_sign(Pair quads) {
  const hn::RebindToUnsigned<Pairs> du;
  return {hn::And(quads, hn::Set(Pairs(), 0xff)),
          hn::BitCast(Pairs(), hn::ShiftRight<8>(hn::BitCast(du, quads)))};
}

// The sums of a tile, row by row: an array would not stay in registers. Where an instruction adds both
// products of a pair, `more` is not touched, and costs nothing.
template <int R, int N>
struct Sums {
  Sums<R - 1, N> above;
  Sum sum[N], more[N];

  HWY_INLINE void clear() {
    above.clear();
    for (int j = 0; j < N; ++j) sum[j] = more[j] = hn::Zero(Wide());
  }
  HWY_INLINE void add(const int8_t* a, const Halved* column) {
    above.add(a, column);
    const Halved x = with_sign(hn::BitCast(Pairs(), hn::Set(Wide(), quad_at(a + 4 * (R - 1)))));
    for (int j = 0; j < N; ++j) {
      sum[j] = hn::ReorderWidenMulAccumulate(Wide(), column[j].even, x.even, sum[j], more[j]);
      sum[j] = hn::ReorderWidenMulAccumulate(Wide(), column[j].odd, x.odd, sum[j], more[j]);
    }
  }
  HWY_INLINE void put(int32_t* to) const {
    above.put(to);
    for (int j = 0; j < N; ++j)
      hn::StoreU(hn::RearrangeToOddPlusEven(sum[j], more[j]), Wide(), to + (R - 1) * width() + j * lanes());
  }
};
template <int N>
struct Sums<0, N> {
  HWY_INLINE void clear() {}
  HWY_INLINE void add(const int8_t*, const Halved*) {}
  HWY_INLINE void put(int32_t*) const {}
};

template <int R, int N>
HWY_NOINLINE void tile(const int8_t* a, const uint8_t* b, int64_t quads, int32_t* to) {
  Sums<R, N> sums;
  sums.clear();
  for (int64_t q = 0; q < quads; ++q, a += 4 * kRows, b += 4 * width()) {
    Halved column[N];
    for (int j = 0; j < N; ++j)
      column[j] = without_sign(hn::BitCast(
          Pairs(), hn::LoadU(hn::Repartition<uint8_t, Wide>(), b + 4 * static_cast<int64_t>(j) * lanes())));
    sums.add(a, column);
  }
  sums.put(to);
}
template <int R>
void tile_of(const int8_t* a, const uint8_t* b, int64_t quads, int64_t columns, int32_t* to) {
  if constexpr (kVectors > 2)
    if (columns > 2 * lanes()) return tile<R, 3>(a, b, quads, to);
  if (columns > lanes()) return tile<R, 2>(a, b, quads, to);
  tile<R, 1>(a, b, quads, to);
}
void multiply(const int8_t* a, const uint8_t* b, int64_t quads, int64_t rows, int64_t columns, int32_t* to) {
  if constexpr (kRows > 4)
    if (rows > 4) return tile_of<8>(a, b, quads, columns, to);
  if (rows > 1) return tile_of<4>(a, b, quads, columns, to);
  tile_of<1>(a, b, quads, columns, to);
}

// Both are read along k, so each sum is a dot product; which lane has which product is of no matter.
HWY_INLINE int32_t dot(const int8_t* HWY_RESTRICT x, const int8_t* HWY_RESTRICT y, int64_t k) {
  const Wide d;
  const hn::Rebind<int8_t, Pairs> db;
  const auto step = static_cast<int64_t>(hn::Lanes(Pairs()));
  const auto at = [&](const int8_t* from) HWY_ATTR { return hn::PromoteTo(Pairs(), hn::LoadU(db, from)); };
  Sum s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t q = 0;
  for (; q + 2 * step <= k; q += 2 * step) {
    s0 = hn::ReorderWidenMulAccumulate(d, at(x + q), at(y + q), s0, s1);
    s2 = hn::ReorderWidenMulAccumulate(d, at(x + q + step), at(y + q + step), s2, s3);
  }
  if (q + step <= k) {
    s0 = hn::ReorderWidenMulAccumulate(d, at(x + q), at(y + q), s0, s1);
    q += step;
  }
  int32_t total = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; q < k; ++q) total += x[q] * y[q];
  return total;
}
#endif

// x + 128 without a sign has the bits of x but for the first.
constexpr uint32_t kSigns = 0x80808080;

HWY_INLINE void put_quad(uint32_t quad, uint8_t* to) {
  quad ^= kSigns;
  std::memcpy(to, &quad, 4);
}

#if HWY_TARGET == HWY_SCALAR
int64_t pack_four(Int8Rows, int64_t, int64_t, uint8_t*) { return 0; }
#else
// Whole vectors of columns j to j + 3, from quad 0 on: four rows of memory, whose quads are numbers of 32
// bits that swap places. Rows further on are asked for: a weight comes from beyond the caches. Returns how
// many quads are done.
int64_t pack_four(Int8Rows b, int64_t j, int64_t quads, uint8_t* HWY_RESTRICT to) {
  constexpr int64_t kAhead = 8;
  const hn::ScalableTag<uint32_t> d;
  const hn::Repartition<uint8_t, decltype(d)> bytes;
  const int64_t panel = width(), step = lanes();
  HWY_ALIGN uint32_t swapped[4 * HWY_MAX_BYTES / sizeof(uint32_t)];
  int64_t q = 0;
  const auto load = [&](int64_t r) HWY_ATTR {
    const auto* from = reinterpret_cast<const uint8_t*>(b.row(j + r)) + 4 * q;
    // It may lie beyond the last row.
    const auto ahead = reinterpret_cast<uintptr_t>(from) + static_cast<uintptr_t>(kAhead * b.step);
    __builtin_prefetch(reinterpret_cast<const void*>(ahead));
    return hn::Xor(hn::BitCast(d, hn::LoadU(bytes, from)), hn::Set(d, kSigns));
  };
  for (; q + step <= quads; q += step) {
    hn::StoreInterleaved4(load(0), load(1), load(2), load(3), d, swapped);
    for (int64_t i = 0; i < step; ++i) std::memcpy(to + 4 * ((q + i) * panel + j), swapped + 4 * i, 16);
  }
  return q;
}
#endif

void pack_b(Int8Rows b, int64_t columns, int64_t k, uint8_t* to) {
  const int64_t panel = width(), whole = k / 4, quads = quads_of(k);
  for (int64_t j = 0; j < panel; j += 4) {
    const int64_t done = j + 4 <= columns ? pack_four(b, j, whole, to) : 0;
    for (int64_t c = j; c < j + 4; ++c)
      for (int64_t q = done; q < quads; ++q) {
        uint32_t quad = 0;
        if (c < columns)
          std::memcpy(&quad, b.row(c) + 4 * q, q < whole ? size_t{4} : static_cast<size_t>(k % 4));
        put_quad(quad, to + 4 * (q * panel + c));
      }
  }
}

void dots(Int8Rows a, int64_t rows, Int8Rows b, int64_t columns, int64_t k, int32_t* sums) {
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) sums[i * width() + j] = dot(a.row(i), b.row(j), k);
}

void finish(const Int8Finish& f) {
  const hn::ScalableTag<float> d;
  const int64_t step = lanes();
  for (int64_t i = 0; i < f.rows; ++i) {
    const auto excess = hn::Set(Wide(), f.excess[i]);
    const auto scale = hn::Set(d, f.a_scale[i]);
    for (int64_t j = 0; j < f.columns; j += step) {
      const auto sum = hn::Sub(hn::LoadU(Wide(), f.sums + i * width() + j), excess);
      auto y = hn::Mul(hn::Mul(hn::ConvertTo(d, sum), scale), hn::LoadU(d, f.b_scale + j));
      if (f.bias) y = hn::Add(y, hn::LoadU(d, f.bias + j));
      float* to = f.c + i * f.c_row + j;
      if (j + step <= f.columns) {
        hn::StoreU(y, d, to);
      } else {
        HWY_ALIGN float last[HWY_MAX_BYTES / sizeof(float)];
        hn::Store(y, d, last);
        std::copy_n(last, f.columns - j, to);
      }
    }
  }
}

Int8Tiles table() { return {kRows, width(), pack_b, multiply, dots, finish}; }

}  // namespace int8

Int8Tiles table_int8() { return int8::table(); }

}  // namespace HWY_NAMESPACE
}  // namespace weft::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::native {

HWY_EXPORT(table_int8);

const Int8Tiles& int8_tiles() {
  static const Int8Tiles tiles = [] {
    Int8Tiles t = HWY_DYNAMIC_DISPATCH(table_int8)();
    if (t.rows == kMostInt8Rows && t.width == kMostInt8Width)
      if (const auto vnni = multiply_by_vnni()) t.multiply = vnni;
    return t;
  }();
  return tiles;
}

}  // namespace weft::native
#endif
