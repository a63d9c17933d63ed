// Included once per instruction set, by files that hwy/foreach_target.h compiles.
#if defined(WEFT_NATIVE_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_NATIVE_GEMM_TILE_INL_H_
#undef WEFT_NATIVE_GEMM_TILE_INL_H_
#else
#define WEFT_NATIVE_GEMM_TILE_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace weft::native {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A tile of c is kRows x 3 vectors: the accumulators that fit the registers next to 3 vectors of b and one of
// a.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kRows = 8;
#else
constexpr int kRows = 4;
#endif
constexpr int kVectors = 3;

template <class T>
using D = hn::ScalableTag<T>;
template <class T>
using V = hn::Vec<D<T>>;

// The part of c that a tile makes; its last vector may reach beyond the last column. c is overwritten, added
// to, or overwritten with `start` added.
template <class T>
struct Into {
  T* c;
  int64_t row;
  int64_t rows, columns;
  bool accumulate;
  const T* start;      // of the tile's first column, or null
  uintptr_t next = 0;  // address of what is read later: a vector of it for each step along k comes to L2
  uintptr_t next_step = sizeof(V<T>);
  const Tail* tail = nullptr;  // of the tile, whose rows are filters; only with a reader of a that has kTail
};

// The address in the panel that is read after this one of the part that tile i fetches: the first tiles
// fetch all of it.
template <class T>
uintptr_t part_of_next(const T* next, int64_t i, int64_t depth) {
  const auto bytes = static_cast<uintptr_t>(depth) * hn::Lanes(D<T>()) * sizeof(T);
  return reinterpret_cast<uintptr_t>(next) + static_cast<uintptr_t>(i % kVectors) * bytes;
}

// The offset of element (row, p) of a: in rows of the matrix, or in panels of four rows. A tile with more
// rows than there are reads the last one again, or a panel's zeros. kTail: a tile of them may have a tail.
template <class T>
struct Rows {
  static constexpr bool kTail = false;
  const T* row[kRows];
  int64_t step;
  Rows(const Product<T>& p, int64_t i, int64_t k) : step(p.a_column) {
    for (int64_t r = 0; r < kRows; ++r) row[r] = p.a + std::min(i + r, p.m - 1) * p.a_row + k * step;
  }
  HWY_INLINE const T* at(int i, int64_t p) const { return row[i] + p * step; }
};
template <class T>
struct Panels {
  static constexpr bool kTail = std::is_same_v<T, float>;
  const T* a;
  int64_t depth;
  HWY_INLINE const T* at(int i, int64_t p) const { return a + (i / 4) * depth * 4 + p * 4 + i % 4; }
};
// Rows of windows of an image: an element lies at a place of its row and an offset of its column.
template <class T>
struct Windows {
  static constexpr bool kTail = false;
  const T* row[kRows];
  const int64_t* offset;
  Windows(const T* x, const int64_t* places, int64_t rows, const int64_t* offsets) : offset(offsets) {
    for (int64_t r = 0; r < kRows; ++r) row[r] = x + places[std::min(r, rows - 1)];
  }
  HWY_INLINE const T* at(int i, int64_t p) const { return row[i] + offset[p]; }
};

// A vector with n valid elements; no element beyond them is touched.
template <class T>
HWY_INLINE V<T> load_part(const T* from, int64_t n) {
  const D<T> d;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN T whole[HWY_MAX_BYTES / sizeof(T)] = {};
  std::copy_n(from, n, whole);
  return hn::Load(d, whole);
#else
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n)), d, from);
#endif
}
template <class T>
HWY_INLINE void store_part(V<T> v, T* to, int64_t n) {
  const D<T> d;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN T whole[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, whole);
  std::copy_n(whole, n, to);
#else
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(n)), d, to);
#endif
}
template <bool kPart, class T>
HWY_INLINE V<T> load(const T* from, int64_t n) {
  if constexpr (kPart) return load_part(from, n);
  return hn::LoadU(D<T>(), from);
}
template <bool kPart, class T>
HWY_INLINE void store(V<T> v, T* to, int64_t n) {
  if constexpr (kPart) return store_part(v, to, n);
  hn::StoreU(v, D<T>(), to);
}

// A vector of sums at an offset in a row, or a part of one, as the tail has it.
template <bool kPart>
HWY_INLINE V<float> finished(const Tail& tail, int64_t row, int64_t offset, V<float> v, int64_t n) {
  const D<float> d;
  if (tail.bias) v = hn::Add(v, hn::Set(d, tail.bias[row]));
  if (tail.more) {
    const auto more = load<kPart>(tail.more + offset, n);
    v = hn::Add(v, tail.more_bias ? hn::Add(more, hn::Set(d, tail.more_bias[row])) : more);
  }
  if (tail.relu) v = hn::IfThenZeroElse(hn::Le(v, hn::Zero(d)), v);  // a NaN stays
  return v;
}

// The sums of a tile, row by row: an array would not stay in registers. The last of the N vectors has `part`
// valid elements.
template <int R, int N, bool kPart, class T>
struct Sums {
  Sums<R - 1, N, kPart, T> above;
  V<T> sum[N];

  HWY_INLINE void clear() {
    above.clear();
    for (auto& s : sum) s = hn::Zero(D<T>());
  }
  template <class A>
  HWY_INLINE void add(const A& a, int64_t p, const V<T>* column) {
    above.add(a, p, column);
    const V<T> x = hn::Set(D<T>(), *a.at(R - 1, p));
    for (int j = 0; j < N; ++j) sum[j] = hn::MulAdd(x, column[j], sum[j]);
  }
  template <bool kTail>
  HWY_INLINE void put(const Into<T>& into, int64_t part) const {
    const D<T> d;
    above.template put<kTail>(into, part);
    if (into.rows < R) return;
    T* to = into.c + (R - 1) * into.row;
    const T* before = into.accumulate ? to : into.start;
    for (int j = 0; j < N - 1; ++j) {
      const int64_t at = j * static_cast<int64_t>(hn::Lanes(d));
      put_vector<false, kTail>(into, before ? hn::Add(hn::LoadU(d, before + at), sum[j]) : sum[j], at, part);
    }
    const int64_t last = (N - 1) * static_cast<int64_t>(hn::Lanes(d));
    put_vector<kPart, kTail>(
        into, before ? hn::Add(load<kPart>(before + last, part), sum[N - 1]) : sum[N - 1], last, part);
  }
  template <bool kPartly, bool kTail>
  static HWY_INLINE void put_vector(const Into<T>& into, V<T> v, int64_t at, int64_t part) {
    const int64_t offset = (R - 1) * into.row + at;
    if constexpr (kTail)
      if (into.tail) {
        v = finished<kPartly>(*into.tail, R - 1, offset, v, part);
        if (!kPartly && into.tail->past) return hn::Stream(v, D<T>(), into.c + offset);
      }
    store<kPartly>(v, into.c + offset, part);
  }
};
template <int N, bool kPart, class T>
struct Sums<0, N, kPart, T> {
  HWY_INLINE void clear() {}
  template <class A>
  HWY_INLINE void add(const A&, int64_t, const V<T>*) {}
  template <bool kTail>
  HWY_INLINE void put(const Into<T>&, int64_t) const {}
};

template <int R, int N, bool kPart, class T, class A>
HWY_INLINE void tile(int64_t depth, A a, const T* HWY_RESTRICT b, int64_t b_step, const Into<T>& into) {
  const D<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t last = (N - 1) * lanes, part = into.columns - last;
  Sums<R, N, kPart, T> sums;
  sums.clear();
  uintptr_t next = into.next;
  for (int64_t p = 0; p < depth; ++p, b += b_step) {
    V<T> column[N];
    for (int j = 0; j < N - 1; ++j) column[j] = hn::LoadU(d, b + j * lanes);
    column[N - 1] = load<kPart>(b + last, part);
    __builtin_prefetch(reinterpret_cast<const void*>(next), 0, 2);
    next += into.next_step;
    sums.add(a, p, column);
  }
  sums.template put<A::kTail>(into, part);
}

template <int N, bool kPart, class T, class A>
HWY_NOINLINE void tile_of(int64_t depth, A a, const T* b, int64_t b_step, const Into<T>& into) {
  if constexpr (kRows == 8)
    if (into.rows > 4) return tile<8, N, kPart>(depth, a, b, b_step, into);
  if (into.rows > 1) return tile<4, N, kPart>(depth, a, b, b_step, into);
  tile<1, N, kPart>(depth, a, b, b_step, into);
}
// Of whole vectors.
template <class T, class A>
HWY_INLINE void whole_tile(int64_t vectors, int64_t depth, A a, const T* b, int64_t b_step,
                           const Into<T>& into) {
  if (vectors == 3) return tile_of<3, false>(depth, a, b, b_step, into);
  if (vectors == 2) return tile_of<2, false>(depth, a, b, b_step, into);
  tile_of<1, false>(depth, a, b, b_step, into);
}
// Part of a vector is a tile of its own: there are few, and each width with a part would be code of its own.
template <class T, class A>
HWY_INLINE void any_tile(int64_t depth, A a, const T* b, int64_t b_step, const Into<T>& into) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D<T>()));
  const int64_t vectors = into.columns / lanes, whole = vectors * lanes;
  if (vectors > 0) whole_tile(vectors, depth, a, b, b_step, into);
  if (whole == into.columns) return;
  Into<T> rest = into;
  rest.c += whole, rest.columns -= whole;
  if (into.start) rest.start += whole;
  Tail tail;
  if (into.tail) tail = into.tail->at(0, whole), rest.tail = &tail;
  tile_of<1, true>(depth, a, b + whole, b_step, rest);
}

}  // namespace HWY_NAMESPACE
}  // namespace weft::native
HWY_AFTER_NAMESPACE();

#endif
