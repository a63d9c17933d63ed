#include "backends/native/windows.h"

#include "backends/native/gemm.h"
#include "backends/native/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/windows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::native {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kChunk = 16;  // places that are turned together: a cache line of each filter

#if HWY_TARGET <= HWY_AVX3
using Square = V<float>[kChunk];  // 16 x 16 numbers

// Of every four rows, the numbers of a column become neighbours: block b of x[4 g + i] is column 4 b + i of
// rows 4 g and on. Then the four blocks of a column do.
HWY_INLINE void transpose(Square& x) {
  const D<float> d;
  const hn::Repartition<double, D<float>> pairs;
  const auto lower = [&](V<float> a, V<float> b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const auto upper = [&](V<float> a, V<float> b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  for (int g = 0; g < 16; g += 4) {
    const auto a = hn::InterleaveLower(d, x[g], x[g + 1]), b = hn::InterleaveLower(d, x[g + 2], x[g + 3]),
               e = hn::InterleaveUpper(d, x[g], x[g + 1]), f = hn::InterleaveUpper(d, x[g + 2], x[g + 3]);
    x[g] = lower(a, b), x[g + 1] = upper(a, b), x[g + 2] = lower(e, f), x[g + 3] = upper(e, f);
  }
  for (int i = 0; i < 4; ++i) {
    const auto a = x[i], b = x[i + 4], e = x[i + 8], f = x[i + 12];
    const auto ab = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a),
               ab1 = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a)),
               ef = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(f), e),
               ef1 = hn::OddEvenBlocks(f, hn::SwapAdjacentBlocks(e));
    x[i] = hn::ConcatLowerLower(d, ef, ab), x[i + 4] = hn::ConcatLowerLower(d, ef1, ab1);
    x[i + 8] = hn::ConcatUpperUpper(d, ef, ab), x[i + 12] = hn::ConcatUpperUpper(d, ef1, ab1);
  }
}

// Asks for the lines of a chunk of a filter; the first one, where it lies in two, has come with the chunk
// before.
HWY_INLINE void fetch(const Turned& to, int64_t at) {
  if (!to.tail.past) __builtin_prefetch(to.y + at + kChunk - 1, 1);
  if (to.tail.more) __builtin_prefetch(to.tail.more + at + kChunk - 1);
}

// Up to sixteen rows as wide as a panel become columns from `place` on, a cache line each. Lines of the next
// chunk are asked for meanwhile, since they come from memory.
void turn(const float* HWY_RESTRICT from, int64_t rows, int64_t columns, const Turned& to, int64_t place) {
  const D<float> d;
  constexpr int64_t kWidth = kVectors * kChunk;
  for (int64_t j = 0; j < columns; j += kChunk) {
    Square x;
    for (int64_t i = 0; i < kChunk; ++i) x[i] = hn::LoadU(d, from + std::min(i, rows - 1) * kWidth + j);
    transpose(x);
    const int64_t filters = std::min(kChunk, columns - j);
    int64_t at = j * to.step + place;
    for (int64_t r = 0; r < filters; ++r, at += to.step) {
      if (rows < kChunk) {
        store_part(finished<true>(to.tail, j + r, at, x[r], rows), to.y + at, rows);
        continue;
      }
      const auto y = finished<false>(to.tail, j + r, at, x[r], rows);
      to.tail.past ? hn::Stream(y, d, to.y + at) : hn::StoreU(y, d, to.y + at);
      fetch(to, at + kChunk);
    }
  }
}
#else
// Up to sixteen rows as wide as a panel become columns from `place` on.
void turn(const float* HWY_RESTRICT from, int64_t rows, int64_t columns, const Turned& to, int64_t place) {
  const int64_t width = kVectors * static_cast<int64_t>(hn::Lanes(D<float>()));
  const Tail& tail = to.tail;
  for (int64_t j = 0; j < columns; ++j) {
    const int64_t at = j * to.step + place;
    for (int64_t i = 0; i < rows; ++i) {
      float y = from[i * width + j];
      if (tail.bias) y += tail.bias[j];
      if (tail.more) y += tail.more_bias ? tail.more[at + i] + tail.more_bias[j] : tail.more[at + i];
      to.y[at + i] = tail.relu && y <= 0 ? 0.0f : y;  // a NaN stays
    }
  }
}
#endif

void multiply_windows(const WindowRows& w, int64_t first, int64_t depth, const float* panel,
                      const float* next, int64_t columns, float* c, bool accumulate, const Turned& to) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D<float>())), width = kVectors * lanes;
  const int64_t vectors = (columns + lanes - 1) / lanes;
  for (int64_t j = 0; to.y && j < columns; ++j) {
    if (!to.tail.past) __builtin_prefetch(to.y + j * to.step, 1);
    if (to.tail.more) __builtin_prefetch(to.tail.more + j * to.step);
  }
  for (int64_t i = 0; i < w.rows; i += kRows) {
    const int64_t rows = std::min<int64_t>(kRows, w.rows - i);
    whole_tile(vectors, depth, Windows<float>(w.x, w.places + i, rows, w.offsets + first), panel, width,
               Into<float>{c + i * width, width, rows, vectors * lanes, accumulate, nullptr,
                           part_of_next(next, i / kRows, depth)});
    const int64_t done = i + rows, chunk = (done - 1) / kChunk * kChunk;
    if (to.y && (done % kChunk == 0 || done == w.rows))
      turn(c + chunk * width, done - chunk, columns, to, chunk);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace weft::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::native {

HWY_EXPORT(multiply_windows);

void multiply_windows(const WindowRows& w, int64_t first, int64_t depth, const float* panel,
                      const float* next, int64_t columns, float* c, bool accumulate, const Turned& to) {
  HWY_DYNAMIC_DISPATCH(multiply_windows)(w, first, depth, panel, next, columns, c, accumulate, to);
}

}  // namespace weft::native
#endif
