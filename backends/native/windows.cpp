#include "backends/native/windows.h"

#include <cstring>

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

// Up to sixteen rows as wide as a panel become columns: of every four rows the numbers of a column become
// neighbours, then the fours of a column. Whole lines are written at once, and those of the next chunk asked
// for, since they come from memory.
void turn(const float* HWY_RESTRICT from, int64_t rows, int64_t columns, float* to, int64_t step) {
  const D<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), width = kVectors * lanes;
  HWY_ALIGN float quads[4 * HWY_MAX_BYTES / sizeof(float)], lines[HWY_MAX_BYTES / sizeof(float)][kChunk];
  const auto row = [&](int64_t i, int64_t j)
                       HWY_ATTR { return hn::LoadU(d, from + std::min(i, rows - 1) * width + j); };
  for (int64_t j = 0; j < columns; j += lanes) {
    for (int64_t i = 0; i < rows; i += 4) {
      hn::StoreInterleaved4(row(i, j), row(i + 1, j), row(i + 2, j), row(i + 3, j), d, quads);
      for (int64_t r = 0; r < lanes; ++r) std::copy_n(quads + 4 * r, 4, lines[r] + i);
    }
    float* at = to + j * step;
    for (int64_t r = 0, last = std::min(lanes, columns - j); r < last; ++r, at += step) {
      __builtin_prefetch(at + kChunk, 1);
      if (rows == kChunk)
        std::memcpy(at, lines[r], sizeof lines[r]);
      else
        std::copy_n(lines[r], rows, at);
    }
  }
}

void multiply_windows(const WindowRows& w, int64_t first, int64_t depth, const float* panel,
                      const float* next, int64_t columns, float* c, bool accumulate, const Turned& to) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D<float>())), width = kVectors * lanes;
  const int64_t vectors = (columns + lanes - 1) / lanes;
  for (int64_t i = 0; i < w.rows; i += kRows) {
    const int64_t rows = std::min<int64_t>(kRows, w.rows - i);
    tile_of<false>(vectors, depth, Windows<float>(w.x, w.places + i, rows, w.offsets + first), panel, width,
                   Into<float>{c + i * width, width, rows, vectors * lanes, accumulate, nullptr,
                               part_of_next(next, i / kRows, depth)});
    const int64_t done = i + rows, chunk = (done - 1) / kChunk * kChunk;
    if (to.y && (done % kChunk == 0 || done == w.rows))
      turn(c + chunk * width, done - chunk, columns, to.y + chunk, to.step);
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
