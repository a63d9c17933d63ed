#include "backends/native/split.h"

#if defined(__x86_64__) && defined(__linux__)
// The headers of GCC 12 make values that nobody reads out of themselves (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__  // which does not know this one
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WEFT_SPLIT __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16")))
#define WEFT_SPLIT_INLINE WEFT_SPLIT __attribute__((always_inline)) inline

namespace weft::native {
namespace {

constexpr int64_t kTile = 1024, kLine = 64, kLines = 16;

bool may_use_tiles() {
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512bw")) return false;
  unsigned a = 0, b = 0, c = 0, d = 0;
  __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
  constexpr unsigned kBf16 = 1u << 22, kTiles = 1u << 24;
  if ((d & (kBf16 | kTiles)) != (kBf16 | kTiles)) return false;
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

// The parts of 2 x 16 numbers.
struct Parts {
  __m512i part[3];  // 32 bf16 each
};
WEFT_SPLIT_INLINE __m512 low_of(__m512i part) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(part)), 16));
}
WEFT_SPLIT_INLINE __m512 high_of(__m512i part) {
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(part, 1)), 16));
}
WEFT_SPLIT_INLINE Parts split(__m512 low, __m512 high) {
  Parts out;
  for (int i = 0; i < 3; ++i) {
    out.part[i] = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
    low = _mm512_sub_ps(low, low_of(out.part[i])), high = _mm512_sub_ps(high, high_of(out.part[i]));
  }
  return out;
}

// Magnitudes as integers order as the numbers do, and those of what is not finite are the largest.
WEFT_SPLIT_INLINE __m512i larger(__m512i most, __m512 x) {
  return _mm512_max_epu32(most, _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff)));
}
constexpr unsigned kLeast = (127 - 40) << 23, kMost = (127 + 100) << 23;  // 2^-40, 2^100
bool in_range(unsigned most) { return most == 0 || (most >= kLeast && most <= kMost); }

WEFT_SPLIT_INLINE __mmask16 first(int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
}

// 16 lines of 32 numbers along k, from q: each line split. `most` has the largest magnitude of each so far.
// kFar: the lines are weights, which come from memory. The same place of the next 16 lines is asked for,
// since the hardware prefetcher does not detect so many short streams; it may lie beyond the last line.
template <bool kFar>
WEFT_SPLIT_INLINE void split_lines(const Lines& x, int64_t count, int64_t q, int64_t k,
                                   __m512i (&most)[kLines], __m512i (&to)[3][kLines]) {
  const __mmask16 low = first(k - q), high = first(k - q - 16);
  for (int64_t r = 0; r < kLines; ++r) {
    const float* from = x.from + (r < count ? r : 0) * x.line + q;
    const __mmask16 is_there = r < count ? 0xffff : 0;
    const __m512 l = _mm512_maskz_loadu_ps(low & is_there, from),
                 h = _mm512_maskz_loadu_ps(high & is_there, from + 16);
    if constexpr (kFar) {
      const auto next =
          reinterpret_cast<uintptr_t>(from) + static_cast<uintptr_t>(kLines * x.line) * sizeof(float);
      _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T1);
      _mm_prefetch(reinterpret_cast<const char*>(next + kLine), _MM_HINT_T1);
    }
    most[r] = larger(larger(most[r], l), h);
    const Parts parts = split(l, h);
    for (int i = 0; i < 3; ++i) to[i][r] = parts.part[i];
  }
}
WEFT_SPLIT bool all_in_range(const __m512i (&most)[kLines]) {
  for (const __m512i& m : most)
    if (!in_range(_mm512_reduce_max_epu32(m))) return false;
  return true;
}

// Swaps lines and columns of 16 x 16 pairs.
WEFT_SPLIT_INLINE void transpose(__m512i (&x)[kLines]) {
  __m512i y[kLines];
  for (int i = 0; i < 16; i += 2)
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]), y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  for (int i = 0; i < 16; i += 4) {
    x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]), x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]),
          x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
  }
  for (int i = 0; i < 16; i += 8)
    for (int j = i; j < i + 4; ++j)
      y[j] = _mm512_shuffle_i32x4(x[j], x[j + 4], 0x88),
      y[j + 4] = _mm512_shuffle_i32x4(x[j], x[j + 4], 0xdd);
  for (int j = 0; j < 8; ++j)
    x[j] = _mm512_shuffle_i32x4(y[j], y[j + 8], 0x88), x[j + 8] = _mm512_shuffle_i32x4(y[j], y[j + 8], 0xdd);
}

WEFT_SPLIT_INLINE void store_tile(const __m512i (&lines)[kLines], uint8_t* to) {
  for (int64_t r = 0; r < kLines; ++r) _mm512_store_si512(to + r * kLine, lines[r]);
}

// A panel whose lines are contiguous along k: rows of a, or columns of b, whose pairs are turned.
template <bool kColumns>
WEFT_SPLIT bool split_contiguous(const Lines& x, int64_t count, int64_t k, uint8_t* to) {
  bool good = true;
  for (int64_t tile = 0; tile < 2; ++tile) {
    const int64_t lines = count - tile * kLines < 0 ? 0 : count - tile * kLines;
    const Lines part{x.from + (lines ? tile * kLines * x.line : 0), x.line, 1};
    __m512i most[kLines];
    for (__m512i& m : most) m = _mm512_setzero_si512();
    for (int64_t q = 0; q < k; q += kSplitStep) {
      __m512i parts[3][kLines];
      split_lines<kColumns>(part, lines, q, k, most, parts);
      for (int i = 0; i < 3; ++i) {
        if constexpr (kColumns) transpose(parts[i]);
        store_tile(parts[i], to + q / kSplitStep * kSplitStepBytes + (2 * i + tile) * kTile);
      }
    }
    good &= all_in_range(most);
  }
  return good;
}

// 16 pairs of neighbours along k, of columns that are contiguous.
WEFT_SPLIT_INLINE void split_pairs(__m512 even, __m512 odd, uint8_t* to) {
  for (int i = 0; i < 3; ++i, to += 2 * kTile) {
    const __m512i e = _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(even))),
                  o = _mm512_slli_epi32(
                      _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(odd))), 16);
    _mm512_store_si512(to, _mm512_or_si512(e, o));
    even = _mm512_sub_ps(even, _mm512_castsi512_ps(_mm512_slli_epi32(e, 16)));
    odd = _mm512_sub_ps(odd, _mm512_castsi512_ps(o));
  }
}
WEFT_SPLIT bool split_across(const Lines& b, int64_t count, int64_t k, uint8_t* to) {
  bool good = true;
  for (int64_t tile = 0; tile < 2; ++tile) {
    const __mmask16 there = first(count - tile * kLines);
    const float* from = b.from + (there ? tile * kLines : 0);
    __m512i most = _mm512_setzero_si512();
    for (int64_t q = 0; q < (k + kSplitStep - 1) / kSplitStep * kSplitStep; q += 2) {
      const __m512 even = _mm512_maskz_loadu_ps(q < k ? there : 0, from + (q < k ? q : 0) * b.along),
                   odd =
                       _mm512_maskz_loadu_ps(q + 1 < k ? there : 0, from + (q + 1 < k ? q + 1 : 0) * b.along);
      most = larger(larger(most, even), odd);
      split_pairs(even, odd,
                  to + q / kSplitStep * kSplitStepBytes + tile * kTile + q % kSplitStep / 2 * kLine);
    }
    alignas(64) unsigned each[16];
    _mm512_store_si512(each, most);
    for (const unsigned m : each) good &= in_range(m);
  }
  return good;
}

// Eight tiles of 16 lines of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_of_line[16] = {kLine, kLine, kLine, kLine, kLine, kLine, kLine, kLine};
  uint8_t lines[16] = {kLines, kLines, kLines, kLines, kLines, kLines, kLines, kLines};
};
constexpr TileConfig kConfig;
// The compiler does not know what instructions of tiles read.
inline void finish_stores() { __asm__ volatile("" ::: "memory"); }

// Tiles 0 to 3 add up, 4 and 5 are of a, 6 and 7 of b. Each part of a panel that is loaded is used with what
// is there already: 14 loads for 24 products.
template <bool kTwoRows, bool kTwoColumns>
WEFT_SPLIT_INLINE void add_products() {
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (kTwoColumns) _tile_dpbf16ps(1, 4, 7);
  if constexpr (kTwoRows) _tile_dpbf16ps(2, 5, 6);
  if constexpr (kTwoRows && kTwoColumns) _tile_dpbf16ps(3, 5, 7);
}
template <bool kTwoRows>
WEFT_SPLIT_INLINE void load_a(const uint8_t* step, int part) {
  _tile_loadd(4, step + 2 * part * kTile, kLine);
  if constexpr (kTwoRows) _tile_loadd(5, step + (2 * part + 1) * kTile, kLine);
}
template <bool kTwoColumns>
WEFT_SPLIT_INLINE void load_b(const uint8_t* step, int part) {
  _tile_loadd(6, step + 2 * part * kTile, kLine);
  if constexpr (kTwoColumns) _tile_loadd(7, step + (2 * part + 1) * kTile, kLine);
}
// Sums that a block of tiles left, on their way to c. Rows are written between the steps of the next block.
struct Pending {
  const float* sums = nullptr;
  SplitResult to{};
  int64_t written = 0;  // rows
};
WEFT_SPLIT_INLINE void write_rows(Pending& p, int64_t count) {
  const SplitResult& to = p.to;
  const int64_t end = p.written + count < to.rows ? p.written + count : to.rows;
  const __mmask16 low = first(to.columns), high = first(to.columns - kLines);
  const __m512 zero = _mm512_setzero_ps(), l = to.start ? _mm512_maskz_loadu_ps(low, to.start) : zero,
               h = to.start ? _mm512_maskz_loadu_ps(high, to.start + kLines) : zero;
  for (; p.written < end; ++p.written) {
    const float* sums = p.sums + p.written * kSplitPanel;
    float* c = to.c + p.written * to.c_row;
    const __m512 before = to.accumulate ? _mm512_maskz_loadu_ps(low, c) : l,
                 after = to.accumulate ? _mm512_maskz_loadu_ps(high, c + kLines) : h;
    _mm512_mask_storeu_ps(c, low, _mm512_add_ps(before, _mm512_load_ps(sums)));
    if (high) _mm512_mask_storeu_ps(c + kLines, high, _mm512_add_ps(after, _mm512_load_ps(sums + kLines)));
  }
}

template <bool kTwoRows, bool kTwoColumns>
WEFT_SPLIT void multiply_panels(const uint8_t* a, const uint8_t* b, int64_t steps, float* sums,
                                Pending& before) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t s = 0; s < steps; ++s, a += kSplitStepBytes, b += kSplitStepBytes) {
    load_a<kTwoRows>(a, 2), load_b<kTwoColumns>(b, 0), add_products<kTwoRows, kTwoColumns>();
    load_a<kTwoRows>(a, 1), add_products<kTwoRows, kTwoColumns>();
    load_b<kTwoColumns>(b, 1), add_products<kTwoRows, kTwoColumns>();
    if (before.written < before.to.rows) write_rows(before, 8);
    load_a<kTwoRows>(a, 0), add_products<kTwoRows, kTwoColumns>();
    load_b<kTwoColumns>(b, 2), add_products<kTwoRows, kTwoColumns>();
    load_b<kTwoColumns>(b, 0), add_products<kTwoRows, kTwoColumns>();
  }
  write_rows(before, kSplitPanel);
  constexpr int64_t kRow = kSplitPanel * 4;
  _tile_stored(0, sums, kRow);
  if constexpr (kTwoColumns) _tile_stored(1, sums + kLines, kRow);
  if constexpr (kTwoRows) _tile_stored(2, sums + kLines * kSplitPanel, kRow);
  if constexpr (kTwoRows && kTwoColumns) _tile_stored(3, sums + kLines * kSplitPanel + kLines, kRow);
}

}  // namespace

bool splits_products() {
  static const bool may = may_use_tiles();
  return may;
}

bool split_rows(const Lines& a, int64_t count, int64_t k, uint8_t* to) {
  return split_contiguous<false>(a, count, k, to);
}
bool split_columns(const Lines& b, int64_t count, int64_t k, uint8_t* to) {
  return b.along == 1 ? split_contiguous<true>(b, count, k, to) : split_across(b, count, k, to);
}

WEFT_SPLIT void join_columns(const uint8_t* panel, int64_t k, float* to) {
  for (int64_t q = 0; q < k; ++q)
    for (int64_t tile = 0; tile < 2; ++tile) {
      const uint8_t* line =
          panel + q / kSplitStep * kSplitStepBytes + tile * kTile + q % kSplitStep / 2 * kLine;
      __m512 sum = _mm512_setzero_ps();
      for (int i = 2; i >= 0; --i) {
        const __m512i pairs = _mm512_load_si512(line + 2 * i * kTile);
        sum =
            _mm512_add_ps(sum, _mm512_castsi512_ps(q % 2 ? _mm512_and_si512(pairs, _mm512_set1_epi32(~0xffff))
                                                         : _mm512_slli_epi32(pairs, 16)));
      }
      _mm512_storeu_ps(to + q * kSplitPanel + tile * kLines, sum);
    }
}

WEFT_SPLIT static void begin_tiles() { _tile_loadconfig(&kConfig); }
WEFT_SPLIT static void end_tiles() { _tile_release(); }
SplitScope::SplitScope() { begin_tiles(); }
SplitScope::~SplitScope() { end_tiles(); }

namespace {

using MultiplyPanels = void (*)(const uint8_t*, const uint8_t*, int64_t, float*, Pending&);
MultiplyPanels for_size(const SplitResult& to) {
  if (to.rows > kLines)
    return to.columns > kLines ? multiply_panels<true, true> : multiply_panels<true, false>;
  return to.columns > kLines ? multiply_panels<false, true> : multiply_panels<false, false>;
}

// Some steps of all panels. The factor with fewer stays in the cache, the other one is gone through once.
WEFT_SPLIT void multiply_steps(const SplitFactor& a, const SplitFactor& b, int64_t steps,
                               const SplitResult& to) {
  alignas(64) float sums[2][kSplitPanel * kSplitPanel];
  Pending pending;
  int turn = 0;
  const int64_t down = (to.rows + kSplitPanel - 1) / kSplitPanel,
                across = (to.columns + kSplitPanel - 1) / kSplitPanel;
  const bool rows_last = down <= across;
  const int64_t inner = rows_last ? down : across;
  for (int64_t t = 0; t < down * across; ++t, turn = 1 - turn) {
    const int64_t i = rows_last ? t % inner : t / inner, j = rows_last ? t / inner : t % inner;
    SplitResult part = to;
    part.c += i * kSplitPanel * to.c_row + j * kSplitPanel;
    part.start = to.start ? to.start + j * kSplitPanel : nullptr;
    const int64_t rows = to.rows - i * kSplitPanel, columns = to.columns - j * kSplitPanel;
    part.rows = rows < kSplitPanel ? rows : kSplitPanel,
    part.columns = columns < kSplitPanel ? columns : kSplitPanel;
    for_size(part)(a.panels + i * a.size, b.panels + j * b.size, steps, sums[turn], pending);
    pending = {sums[turn], part, 0};
  }
  write_rows(pending, kSplitPanel);
}

}  // namespace

// So many steps at a time that panels of a stay in the L2 cache.
void multiply_split(const SplitFactor& a, const SplitFactor& b, int64_t k, const SplitResult& to) {
  constexpr int64_t kSteps = 32;
  finish_stores();
  const int64_t steps = (k + kSplitStep - 1) / kSplitStep, parts = (steps + kSteps - 1) / kSteps;
  for (int64_t p = 0; p < parts; ++p) {
    const int64_t first = steps * p / parts, at = first * kSplitStepBytes;
    SplitResult part = to;
    part.accumulate |= p > 0;
    multiply_steps({a.panels + at, a.size}, {b.panels + at, b.size}, steps * (p + 1) / parts - first, part);
  }
}

}  // namespace weft::native

#else

namespace weft::native {
bool splits_products() { return false; }
bool split_rows(const Lines&, int64_t, int64_t, uint8_t*) { return false; }
bool split_columns(const Lines&, int64_t, int64_t, uint8_t*) { return false; }
void join_columns(const uint8_t*, int64_t, float*) {}
void multiply_split(const SplitFactor&, const SplitFactor&, int64_t, const SplitResult&) {}
SplitScope::SplitScope() = default;
SplitScope::~SplitScope() = default;
}  // namespace weft::native

#endif
