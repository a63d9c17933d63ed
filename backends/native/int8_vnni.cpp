#include "backends/native/int8_tiles.h"

#if defined(__x86_64__)
// The headers of GCC 12 make values that nobody reads out of themselves (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__  // which does not know this one
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <cstring>

// Highway 1.0 has no such instruction, and its target AVX3 is without it.
#define WEFT_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#define WEFT_VNNI_INLINE WEFT_VNNI __attribute__((always_inline)) inline

namespace weft::native {
namespace {

constexpr int64_t kVnniRows = 8, kVnniLanes = 16, kVnniWidth = 3 * kVnniLanes;

// The sums of a tile, row by row: an array would not stay in registers.
template <int R, int N>
struct VnniSums {
  VnniSums<R - 1, N> above;
  __m512i sum[N];

  WEFT_VNNI_INLINE void clear() {
    above.clear();
    for (__m512i& s : sum) s = _mm512_setzero_si512();
  }
  WEFT_VNNI_INLINE void add(const int8_t* a, const __m512i* column) {
    above.add(a, column);
    int32_t quad;
    std::memcpy(&quad, a + 4 * (R - 1), 4);
    const __m512i x = _mm512_set1_epi32(quad);
    for (int j = 0; j < N; ++j) sum[j] = _mm512_dpbusd_epi32(sum[j], column[j], x);
  }
  WEFT_VNNI_INLINE void put(int32_t* to) const {
    above.put(to);
    for (int j = 0; j < N; ++j) _mm512_storeu_si512(to + (R - 1) * kVnniWidth + j * kVnniLanes, sum[j]);
  }
};
template <int N>
struct VnniSums<0, N> {
  WEFT_VNNI_INLINE void clear() {}
  WEFT_VNNI_INLINE void add(const int8_t*, const __m512i*) {}
  WEFT_VNNI_INLINE void put(int32_t*) const {}
};

template <int R, int N>
WEFT_VNNI void vnni_tile(const int8_t* a, const uint8_t* b, int64_t quads, int32_t* to) {
  VnniSums<R, N> sums;
  sums.clear();
  for (int64_t q = 0; q < quads; ++q, a += 4 * kVnniRows, b += 4 * kVnniWidth) {
    __m512i column[N];
    for (int j = 0; j < N; ++j) column[j] = _mm512_loadu_si512(b + 4 * kVnniLanes * j);
    sums.add(a, column);
  }
  sums.put(to);
}
template <int R>
void vnni_rows(const int8_t* a, const uint8_t* b, int64_t quads, int64_t columns, int32_t* to) {
  if (columns > 2 * kVnniLanes) return vnni_tile<R, 3>(a, b, quads, to);
  if (columns > kVnniLanes) return vnni_tile<R, 2>(a, b, quads, to);
  vnni_tile<R, 1>(a, b, quads, to);
}
void vnni_multiply(const int8_t* a, const uint8_t* b, int64_t quads, int64_t rows, int64_t columns,
                   int32_t* to) {
  if (rows > 4) return vnni_rows<8>(a, b, quads, columns, to);
  if (rows > 1) return vnni_rows<4>(a, b, quads, columns, to);
  vnni_rows<1>(a, b, quads, columns, to);
}

}  // namespace

MultiplyInt8 multiply_by_vnni() {
  const bool has = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512vnni");
  return has ? vnni_multiply : nullptr;
}

}  // namespace weft::native

#else

namespace weft::native {
MultiplyInt8 multiply_by_vnni() { return nullptr; }
}  // namespace weft::native

#endif
