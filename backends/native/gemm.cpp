#include "backends/native/gemm.h"

#include <algorithm>

#include "backends/native/scratch.h"
#include "backends/native/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/gemm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/gemm_tile-inl.h"
#include "backends/native/halves-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::native {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kFew = 4;                       // rows that don't justify packing b
constexpr int kFewDots = 8;                   // the same for a transposed b, which is dearer to pack
constexpr int kFewTiles = 3;                  // readers of a panel of b that don't justify packing it
constexpr int64_t kCached = 16384;            // elements of b that stay in the cache across rows of a
constexpr int64_t kSmall = int64_t{1} << 22;  // multiply-adds that don't justify a pass over b to pack it

// ---- packing

template <class T>
void pack_a(const Product<T>& p, int64_t k0, int64_t depth, int64_t i0, int64_t i1, T* HWY_RESTRICT to) {
  const D<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t padded = i0 + (i1 - i0 + kRows - 1) / kRows * kRows;
  for (int64_t i = i0; i < padded; i += 4, to += 4 * depth) {
    const int64_t rows = std::clamp<int64_t>(i1 - i, 0, 4);
    const T* from = p.a + (rows ? i : 0) * p.a_row + k0 * p.a_column;
    if (rows == 4 && p.a_column == 1) {
      int64_t q = 0;
      for (; q + lanes <= depth; q += lanes)
        hn::StoreInterleaved4(hn::LoadU(d, from + q), hn::LoadU(d, from + p.a_row + q),
                              hn::LoadU(d, from + 2 * p.a_row + q), hn::LoadU(d, from + 3 * p.a_row + q), d,
                              to + 4 * q);
      for (; q < depth; ++q)
        for (int64_t r = 0; r < 4; ++r) to[4 * q + r] = from[r * p.a_row + q];
    } else if (rows == 4 && p.a_row == 1) {  // transposed: four rows are contiguous
      for (int64_t q = 0; q < depth; ++q) std::copy_n(from + q * p.a_column, 4, to + 4 * q);
    } else {
      for (int64_t q = 0; q < depth; ++q)
        for (int64_t r = 0; r < 4; ++r) to[4 * q + r] = r < rows ? from[r * p.a_row + q * p.a_column] : T{0};
    }
  }
}

/// Elements that need no conversion.
template <class T>
struct Plain {
  using Stored = T;
  static HWY_INLINE V<T> load(const T* from) { return hn::LoadU(D<T>(), from); }
  static HWY_INLINE V<T> part(const T* from, int64_t n) { return load_part(from, n); }
  static HWY_INLINE T one(const T* from) { return *from; }
};

// Asks for an element that is read later; it may lie beyond the last one.
template <class T>
HWY_INLINE void fetch(const T* from, int64_t offset) {
  const auto at = reinterpret_cast<uintptr_t>(from) + static_cast<uintptr_t>(offset) * sizeof(T);
  __builtin_prefetch(reinterpret_cast<const void*>(at));
}

// A panel of b from column j0; `from` is its first element.
template <class Read, class T>
void pack_b_panel(const Product<T>& p, const typename Read::Stored* from, int64_t depth, int64_t j0,
                  T* HWY_RESTRICT to) {
  const D<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t width = kVectors * lanes, columns = std::min(width, p.n - j0);
  if (p.b_column == 1 && columns == width) {
    for (int64_t q = 0; q < depth; ++q)
      for (int j = 0; j < kVectors; ++j)
        hn::StoreU(Read::load(from + q * p.b_row + j * lanes), d, to + q * width + j * lanes);
    return;
  }
  if (p.b_column == 1) {  // the last panel is read in whole vectors too
    for (int64_t q = 0; q < depth; ++q)
      for (int64_t j = 0; j < columns; j += lanes)
        hn::StoreU(Read::part(from + q * p.b_row + j, std::min(lanes, columns - j)), d, to + q * width + j);
    return;
  }
  if (columns < width) std::fill_n(to, depth * width, T{0});
  // Transposed: four columns of b are four rows of memory. Rows further on are asked for: they are too short
  // for the processor to foresee them, and a weight comes from beyond the caches.
  constexpr int64_t kAhead = 16;
  int64_t j = 0;
  HWY_ALIGN T quad[4 * HWY_MAX_BYTES / sizeof(T)];
  for (; j + 4 <= columns; j += 4) {
    const auto* row = from + j * p.b_column;
    int64_t q = 0;
    for (; q + lanes <= depth; q += lanes) {
      for (int64_t r = kAhead; r < kAhead + 4; ++r) fetch(row, r * p.b_column + q);
      hn::StoreInterleaved4(Read::load(row + q), Read::load(row + p.b_column + q),
                            Read::load(row + 2 * p.b_column + q), Read::load(row + 3 * p.b_column + q), d,
                            quad);
      for (int64_t r = 0; r < lanes; ++r) std::copy_n(quad + 4 * r, 4, to + (q + r) * width + j);
    }
    for (; q < depth; ++q)
      for (int64_t r = 0; r < 4; ++r) to[q * width + j + r] = Read::one(row + r * p.b_column + q);
  }
  for (; j < columns; ++j)
    for (int64_t q = 0; q < depth; ++q) to[q * width + j] = Read::one(from + j * p.b_column + q);
}
template <class Read, class T>
void pack_b_panels(const Product<T>& p, const typename Read::Stored* b, int64_t k0, int64_t depth,
                   int64_t first, int64_t last, T* to) {
  const int64_t width = kVectors * static_cast<int64_t>(hn::Lanes(D<T>()));
  for (int64_t j = first; j < last; ++j)
    pack_b_panel<Read>(p, b + k0 * p.b_row + j * width * p.b_column, depth, j * width,
                       to + j * width * depth);
}
template <class T>
void pack_b(const Product<T>& p, int64_t k0, int64_t depth, int64_t first, int64_t last, T* to) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (p.half_b && p.half_type == Stored::bf16)
      return pack_b_panels<Brains>(p, p.half_b, k0, depth, first, last, to);
    if (p.half_b) return pack_b_panels<Halves>(p, p.half_b, k0, depth, first, last, to);
  }
  pack_b_panels<Plain<T>>(p, p.b, k0, depth, first, last, to);
}

// ---- products

// The part of c from row i and column j, within one tile and the product.
template <class T>
Into<T> tile_at(const Product<T>& p, int64_t k0, int64_t i, int64_t rows, int64_t j, int64_t columns) {
  const T* start = k0 == 0 && p.start ? p.start + j : nullptr;
  return {p.c + i * p.c_row + j,  p.c_row, std::min<int64_t>(kRows, rows), columns,
          p.accumulate || k0 > 0, start};
}

// With this few panels of b, a is not read often enough to pack it.
constexpr int64_t kFewPanels = 4;

template <class T>
void multiply_block(const Product<T>& p, int64_t k0, int64_t depth, int64_t i0, int64_t i1, int64_t first,
                    int64_t last, const T* packed) {
  const int64_t width = kVectors * static_cast<int64_t>(hn::Lanes(D<T>()));
  const int64_t padded = (i1 - i0 + kRows - 1) / kRows * kRows;
  T* a = nullptr;
  // With one tile of rows, packing a saves no reads.
  if (last - first > kFewPanels && (!p.packed_b || i1 - i0 > kRows)) {
    a = scratch<T>(Scratch::packed_a, padded * depth);
    pack_a(p, k0, depth, i0, i1, a);
  }
  for (int64_t j = first; j < last; ++j) {
    const int64_t columns = std::min(width, p.n - j * width);
    const T* b = packed + j * width * depth;
    for (int64_t i = i0; i < i1; i += kRows) {
      auto into = tile_at(p, k0, i, i1 - i, j * width, columns);
      into.next = part_of_next(b + depth * width, (i - i0) / kRows, depth);
      if (a)
        any_tile(depth, Panels<T>{a + (i - i0) * depth, depth}, b, width, into);
      else
        any_tile(depth, Rows<T>(p, i, k0), b, width, into);
    }
  }
}

// Reads the operands in place. Columns in even steps of at most three vectors: 64 floats are 2 + 2 vectors of
// 16, not 3 + 1.
template <class T>
void multiply_in_place(const Product<T>& p) {
  constexpr int64_t kDepth = 192;  // rows of b whose columns of a step fit the L1 cache
  const auto lanes = static_cast<int64_t>(hn::Lanes(D<T>()));
  const int64_t all = (p.n + lanes - 1) / lanes, steps = (all + kVectors - 1) / kVectors;
  for (int64_t k = 0; k < p.k; k += kDepth)
    for (int64_t s = 0; s < steps; ++s) {
      const int64_t j = all * s / steps * lanes, columns = std::min(p.n, all * (s + 1) / steps * lanes) - j;
      for (int64_t i = 0; i < p.m; i += kRows)
        any_tile(std::min(kDepth, p.k - k), Rows<T>(p, i, k), p.b + k * p.b_row + j, p.b_row,
                 tile_at(p, k, i, p.m - i, j, columns));
    }
}

// Few rows times a transposed b: both are read along k, so each element of c is a dot product. b is read
// once, as one stream, which is much faster than several streams.
template <class T>
HWY_INLINE T dot_product(const T* HWY_RESTRICT x, const T* HWY_RESTRICT y, int64_t k) {
  const D<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V<T> s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  const auto add = [&](V<T>& s, int64_t q)
                       HWY_ATTR { s = hn::MulAdd(hn::LoadU(d, x + q), hn::LoadU(d, y + q), s); };
  int64_t q = 0;
  for (; q + 4 * lanes <= k; q += 4 * lanes)
    add(s0, q), add(s1, q + lanes), add(s2, q + 2 * lanes), add(s3, q + 3 * lanes);
  for (; q + lanes <= k; q += lanes) add(s0, q);
  T total = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; q < k; ++q) total += x[q] * y[q];
  return total;
}
template <class T>
void multiply_dots(const Product<T>& p) {
  for (int64_t j = 0; j < p.n; ++j)
    for (int64_t i = 0; i < p.m; ++i) {
      const T total = dot_product(p.a + i * p.a_row, p.b + j * p.b_column, p.k);
      T& to = p.c[i * p.c_row + j];
      to = p.accumulate ? to + total : p.start ? p.start[j] + total : total;
    }
}

template <class T>
void begin_row(const T* start, int64_t n, T* c) {
  if (start)
    std::copy_n(start, n, c);
  else
    std::fill_n(c, n, T{0});
}

// One vector of c, or a part of one, plus x times up to four rows of b.
template <bool kPart, class T>
HWY_INLINE void add_rows(const T* x, const T* const* b, int64_t n, int64_t j, int64_t part, T* c) {
  const D<T> d;
  const auto at = [&](const T* from) HWY_ATTR { return load<kPart>(from + j, part); };
  auto y = hn::MulAdd(hn::Set(d, x[0]), at(b[0]), at(c));
  if (n > 1) y = hn::MulAdd(hn::Set(d, x[1]), at(b[1]), y);
  if (n > 2) y = hn::MulAdd(hn::Set(d, x[2]), at(b[2]), y);
  if (n > 3) y = hn::MulAdd(hn::Set(d, x[3]), at(b[3]), y);
  store<kPart>(y, c + j, part);
}

// Few rows times rows of b: b is read once, in order, four rows at a time, while a part of c stays in L1.
template <class T>
void multiply_few(const Product<T>& p) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D<T>()));
  constexpr int64_t kStretch = 1024;
  for (int64_t j0 = 0; j0 < p.n; j0 += kStretch) {
    const int64_t j1 = std::min(p.n, j0 + kStretch), whole = j0 + (j1 - j0) / lanes * lanes;
    for (int64_t i = 0; i < p.m; ++i)
      begin_row(p.start ? p.start + j0 : nullptr, j1 - j0, p.c + i * p.c_row + j0);
    for (int64_t q = 0; q < p.k; q += 4) {
      const int64_t n = std::min<int64_t>(4, p.k - q);
      const T* b[4];
      for (int64_t r = 0; r < 4; ++r) b[r] = p.b + (q + std::min(r, n - 1)) * p.b_row;
      for (int64_t i = 0; i < p.m; ++i) {
        T x[4] = {}, *c = p.c + i * p.c_row;
        for (int64_t r = 0; r < n; ++r) x[r] = p.a[i * p.a_row + (q + r) * p.a_column];
        for (int64_t j = j0; j < whole; j += lanes) add_rows<false>(x, b, n, j, 0, c);
        if (whole < j1) add_rows<true>(x, b, n, whole, j1 - whole, c);
      }
    }
  }
}

template <class T>
bool small_product(const Product<T>& p) {
  if (p.a_column == 1 && p.b_row == 1 && p.b_column != 1 && p.m <= kFewDots) return true;
  if (p.b_column != 1) return false;
  return p.m <= kFewTiles * kRows || p.n <= 2 * kVectors * static_cast<int64_t>(hn::Lanes(D<T>())) ||
         p.m * p.n * p.k <= kSmall;
}
template <class T>
void multiply_small(const Product<T>& p) {
  if (p.b_column != 1) return multiply_dots(p);
  const bool few = p.m <= kFew && p.k * p.n > kCached;
  return few && !p.accumulate ? multiply_few(p) : multiply_in_place(p);
}

// Asks for `columns` elements of some rows, whose cache lines no stream of the processor's own foresees.
template <bool kToWrite, class T>
void fetch_rows(const T* from, int64_t step, int64_t rows, int64_t columns) {
  constexpr auto kLine = static_cast<int64_t>(64 / sizeof(T));
  for (int64_t r = 0; r < rows; ++r, from += step) {
    for (int64_t j = 0; j < columns; j += kLine) __builtin_prefetch(from + j, kToWrite);
    __builtin_prefetch(from + columns - 1, kToWrite);
  }
}

// Packed rows of a times a strip of b with rows of `b_step` elements. A strip is used once, so it is not
// packed. Tiles follow each other along rows of c, which is written and read in long runs; while one is made,
// what the next one stores comes to the caches. The last rows ask for the strip that follows in b.
template <class T>
void multiply_strip(const T* a, int64_t rows, int64_t depth, const T* b, int64_t b_step, int64_t columns,
                    T* c, int64_t c_row, bool accumulate, const Tail& tail) {
  constexpr int64_t kLines = kVectors + 1;  // of a row of b in a tile
  const auto lanes = static_cast<int64_t>(hn::Lanes(D<T>())), width = kVectors * lanes;
  for (int64_t i = 0; i < rows; i += kRows)
    for (int64_t j = 0; j < columns; j += width) {
      const int64_t j1 = j + width < columns ? j + width : 0, i1 = j1 > 0 ? i : i + kRows,
                    at1 = i1 * c_row + j1;
      const int64_t next_rows = std::min<int64_t>(kRows, rows - i1), next = std::min(width, columns - j1);
      if (!tail.past) fetch_rows<true>(c + at1, c_row, next_rows, next);
      if constexpr (std::is_same_v<T, float>)
        if (tail.more) fetch_rows<false>(tail.more + at1, c_row, next_rows, next);
      const Tail here = tail.at(i, i * c_row + j);
      const int64_t line = (rows - 1 - i) / kRows % kLines;
      any_tile(depth, Panels<T>{a + i * depth, depth}, b + j, b_step,
               Into<T>{.c = c + i * c_row + j,
                       .row = c_row,
                       .rows = std::min<int64_t>(kRows, rows - i),
                       .columns = std::min(width, columns - j),
                       .accumulate = accumulate,
                       .start = nullptr,
                       .next = reinterpret_cast<uintptr_t>(b + j + columns + line * lanes),
                       .next_step = static_cast<uintptr_t>(b_step) * sizeof(T),
                       .tail = tail.changes() ? &here : nullptr});
    }
}

template <class T>
GemmTable<T> table() {
  return {static_cast<int64_t>(hn::Lanes(D<T>())),
          kRows,
          small_product<T>,
          multiply_small<T>,
          pack_a<T>,
          pack_b<T>,
          multiply_block<T>,
          multiply_strip<T>};
}
GemmTable<float> table_f32() { return table<float>(); }
GemmTable<double> table_f64() { return table<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace weft::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::native {

HWY_EXPORT(table_f32);
HWY_EXPORT(table_f64);

template <>
const GemmTable<float>& gemm_table() {
  static const GemmTable<float> t = HWY_DYNAMIC_DISPATCH(table_f32)();
  return t;
}
template <>
const GemmTable<double>& gemm_table() {
  static const GemmTable<double> t = HWY_DYNAMIC_DISPATCH(table_f64)();
  return t;
}

// The depth at which a panel of a fits L1 and a block of b fits L2 or L3; in even parts, without a remainder.
static int64_t even(int64_t whole, int64_t most, int64_t multiple) {
  const int64_t parts = std::max<int64_t>(1, (whole + most - 1) / most);
  return std::max(multiple, ((whole + parts - 1) / parts + multiple - 1) / multiple * multiple);
}
template <class T>
Blocks blocks_of(const Product<T>& p) {
  const int64_t panel = 3 * gemm_table<T>().lanes;
  Blocks b{};
  b.panel = panel;
  b.depth = std::min(even(p.k, kDepthBytes / int64_t{sizeof(T)}, 8), std::max<int64_t>(p.k, 1));
  // Eight blocks of rows for threads to share, unless they would be too thin to justify packing b.
  b.rows = even(p.m, std::clamp<int64_t>((p.m + 63) / 64 * 8, 32, 128), 8);
  b.columns = even(p.n, 3072, panel);
  b.b_size = b.columns * b.depth;
  return b;
}
template Blocks blocks_of(const Product<float>&);
template Blocks blocks_of(const Product<double>&);

template <class T>
void multiply(const Product<T>& p) {
  if (p.k == 0) {
    for (int64_t i = 0; i < p.m && !p.accumulate; ++i) {
      T* c = p.c + i * p.c_row;
      p.start ? std::copy_n(p.start, p.n, c) : std::fill_n(c, p.n, T{0});
    }
    return;
  }
  const GemmTable<T>& gemm = gemm_table<T>();
  const Blocks b = blocks_of(p);
  if (p.packed_b) {
    multiply_packed(p, b, 0, p.m, 0, p.n);
    return;
  }
  if (gemm.small(p)) return gemm.direct(p);
  T* packed = scratch<T>(Scratch::packed_b, b.b_size);
  for (int64_t j = 0; j < p.n; j += b.columns) {
    const int64_t columns = std::min(b.columns, p.n - j), panels = (columns + b.panel - 1) / b.panel;
    const Product<T> part = p.part(0, p.m, j, columns);
    for (int64_t k = 0; k < p.k; k += b.depth) {
      const int64_t depth = std::min(b.depth, p.k - k);
      gemm.pack_b(part, k, depth, 0, panels, packed);
      for (int64_t i = 0; i < p.m; i += b.rows)
        gemm.block(part, k, depth, i, std::min(p.m, i + b.rows), 0, panels, packed);
    }
  }
}
template void multiply(const Product<float>&);
template void multiply(const Product<double>&);

}  // namespace weft::native
#endif
