#include "backends/native/half_product.h"

#include "backends/native/halves.h"
#include "backends/native/rows.h"
#include "backends/native/scratch.h"
#include "backends/native/spread.h"

namespace weft::native {

namespace {

constexpr int64_t kFewRows = 8;
constexpr int64_t kDotColumns = 64;            // of c that are computed before they are rounded
constexpr int64_t kAtOnce = int64_t{1} << 19;  // elements of c, or of a widened b, at a time
constexpr int64_t kRowsAtOnce = 512;
constexpr int64_t kElementsAThread = 1 << 14;

/// Stands for a Host, on this thread alone.
struct Alone {
  template <class F>
  void parallel_for(int64_t n, int64_t, F body) const {
    body(0, n);
  }
};

// Rounds n sums to c, once, with what is there where the product accumulates.
void round_to(uint16_t* c, float* sums, int64_t n, const HalfProduct& p) {
  constexpr int64_t kPiece = 256;
  float before[kPiece];
  for (int64_t i = 0; p.accumulate && i < n; i += kPiece) {
    const int64_t length = std::min(kPiece, n - i);
    widen(p.type, c + i, before, length);
    add_to(sums + i, before, length);
  }
  narrow(p.type, sums, c, n);
}

// The f32 product uses all threads if it may.
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

// a in place: in rows of k, or transposed in rows of m.
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
    float c[(kFewRows + 1) * kDotColumns];  // one more row for the start
    float* start = c + kFewRows * kDotColumns;
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t j0 = piece * kDotColumns, j1 = std::min(p.n, j0 + kDotColumns);
      half_dots(p.type, x, p.m, p.b + j0 * p.b_column, p.b_column, j1 - j0, p.k, c, kDotColumns);
      if (p.start) widen(p.type, p.start + j0, start, j1 - j0);
      for (int64_t i = 0; i < p.m; ++i) {
        if (p.start) add_to(c + i * kDotColumns, start, j1 - j0);
        round_to(p.c + i * p.n + j0, c + i * kDotColumns, j1 - j0, p);
      }
    }
  });
}

// b of `part`, widened: in rows of n, or transposed in rows of k.
template <class H>
void widen_b(const H& host, Product<float>& part) {
  const bool turned = part.b_column != 1;
  const int64_t rows = turned ? part.n : part.k, length = turned ? part.k : part.n;
  auto* b = scratch<float>(Scratch::columns, rows * length);
  widen_rows(host, part.half_type, part.half_b, turned ? part.b_column : part.b_row, rows, length, b);
  part.half_b = nullptr, part.b = b;
  (turned ? part.b_column : part.b_row) = length;
}

// Computes c in f32, some rows and columns at a time.
template <class H>
void many_rows(const H& host, const HalfProduct& p) {
  const float* x = widened_a(host, p);
  const int64_t rows = std::min(p.m, kRowsAtOnce),
                step = std::min(p.n, std::max<int64_t>(64, kAtOnce / std::max(rows, p.k) / 64 * 64));
  auto* c = scratch<float>(Scratch::scores, rows * step + p.n);
  float* start = c + rows * step;
  if (p.start) widen(p.type, p.start, start, p.n);
  for (int64_t j = 0; j < p.n; j += step)
    for (int64_t i = 0; i < p.m; i += rows) {
      const int64_t n = std::min(step, p.n - j);
      Product<float> part{.m = std::min(rows, p.m - i), .n = n, .k = p.k, .c = c, .c_row = n};
      part.a_row = p.a_column == 1 ? p.k : 1, part.a_column = p.a_column == 1 ? 1 : p.m;
      part.a = x + i * part.a_row;
      part.b_row = p.b_row, part.b_column = p.b_column;
      part.half_b = p.b + j * p.b_column, part.half_type = p.type;
      if (p.start) part.start = start + j;
      if (gemm_table<float>().small(part)) widen_b(host, part);
      make(host, part);
      host.parallel_for(part.m, std::max<int64_t>(1, kElementsAThread / n), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) round_to(p.c + (i + r) * p.n + j, c + r * n, n, p);
      });
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
