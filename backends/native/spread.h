#pragma once
#include <algorithm>

#include "backends/native/gemm.h"
#include "backends/native/scratch.h"
#include "weft/backend.hpp"

// Products on all threads.
namespace weft::native {

using backend::Host;

// The cost of a product in multiply-adds of whole tiles. With few rows it is the cost of reading b.
template <class T>
int64_t cost(const Product<T>& p) {
  constexpr int64_t kRowsOfReading = 16;
  const int64_t lanes = gemm_table<T>().lanes;
  return std::max((p.m + 7) / 8 * 8, kRowsOfReading) * ((p.n + lanes - 1) / lanes * lanes) * p.k;
}
constexpr int64_t kWorthSharing = int64_t{1} << 19;  // about 6 us: several times the cost of sharing it
constexpr int64_t kPart = int64_t{1} << 16;          // worth a thread, once threads are there

/// The part of c that a thread takes at a time: `rows` by `columns`.
struct Cut {
  int64_t rows, columns;
};
template <class T, class F>
void for_parts(const Host& host, const Product<T>& p, Cut cut, F f) {
  const int64_t down = (p.m + cut.rows - 1) / cut.rows, across = (p.n + cut.columns - 1) / cut.columns;
  const int64_t each = std::max<int64_t>(1, cost(p.part(0, cut.rows, 0, cut.columns)));
  host.parallel_for(down * across, (kPart + each - 1) / each, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t i = t / across * cut.rows, j = t % across * cut.columns;
      f(i, std::min(p.m, i + cut.rows), j, std::min(p.n, j + cut.columns));
    }
  });
}

// A product that reads its operands in place. Parts of few rows are wide, so b is read in long runs.
template <class T>
void spread_direct(const Host& host, const Product<T>& p) {
  const int64_t panel = 3 * gemm_table<T>().lanes;
  const Cut cut = p.m <= 16
                      ? Cut{p.m, std::clamp<int64_t>(p.n / 8 / panel * panel, panel, 1024 / panel * panel)}
                      : Cut{8, p.n <= 2 * panel ? p.n : panel};
  for_parts(host, p, cut, [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    gemm_table<T>().direct(p.part(i0, i1 - i0, j0, j1 - j0));
  });
}

constexpr int64_t kParts = 32, kLeastRows = 32, kLeastPanels = 3;

// Rows of a part of c, so that there are enough parts.
inline int64_t rows_of_parts(int64_t m, int64_t rows) {
  while (rows / 2 >= kLeastRows && (m + rows - 1) / rows < kParts) rows = (rows / 2 + 7) / 8 * 8;
  return rows;
}
// Panels of a part, given the number of parts along the rows.
inline int64_t panels_of_parts(int64_t panels, int64_t down) {
  const int64_t cuts = std::clamp<int64_t>(kParts / down, 1, std::max<int64_t>(1, panels / kLeastPanels));
  return (panels + cuts - 1) / cuts;
}

// A prepacked b: one thread makes each part, over all of k. Parts of the same columns follow each other, and
// a thread that has all of several columns' makes these in one go, so that it reads b once.
template <class T>
void spread_prepacked(const Host& host, const Product<T>& p) {
  const Blocks b = blocks_of(p);
  const int64_t rows = rows_of_parts(p.m, b.rows), down = (p.m + rows - 1) / rows,
                across = (p.n + b.panel - 1) / b.panel;
  const int64_t each = std::max<int64_t>(1, cost(p.part(0, std::min(rows, p.m), 0, std::min(b.panel, p.n))));
  host.parallel_for(down * across, (kPart + each - 1) / each, [&](int64_t t, int64_t end) {
    while (t < end) {
      const int64_t j = t / down, i = t % down, whole = i == 0 ? (end - t) / down : 0;
      const int64_t columns = std::max<int64_t>(1, whole), i1 = whole ? down : std::min(down, i + end - t);
      multiply_packed(p, b, i * rows, std::min(p.m, i1 * rows), j * b.panel,
                      std::min(p.n, (j + columns) * b.panel));
      t += (i1 - i) * columns;
    }
  });
}

// All threads pack a block of b, then each takes parts of c: blocks of rows, and also of columns if there are
// few rows. Each part packs its rows of a.
template <class T>
void spread_packed(const Host& host, const Product<T>& p) {
  Blocks b = blocks_of(p);
  b.rows = rows_of_parts(p.m, b.rows);
  const int64_t row_blocks = (p.m + b.rows - 1) / b.rows;
  T* packed = scratch<T>(Scratch::packed_b, b.b_size);
  for (int64_t j = 0; j < p.n; j += b.columns) {
    const Product<T> part = p.part(0, p.m, j, std::min(b.columns, p.n - j));
    const int64_t panels = (part.n + b.panel - 1) / b.panel, cut = panels_of_parts(panels, row_blocks);
    for (int64_t k = 0; k < p.k; k += b.depth) {
      Product<T> slice = part;
      slice.k = std::min(b.depth, p.k - k);
      host.parallel_for(
          panels, std::max<int64_t>(1, 8192 / (b.panel * slice.k)),
          [&](int64_t begin, int64_t end) { gemm_table<T>().pack_b(part, k, slice.k, begin, end, packed); });
      for_parts(host, slice, {b.rows, cut * b.panel}, [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
        gemm_table<T>().block(part, k, slice.k, i0, i1, j0 / b.panel, (j1 + b.panel - 1) / b.panel, packed);
      });
    }
  }
}

/// One product on all threads.
template <class T>
void spread(const Host& host, const Product<T>& p) {
  if (p.packed_b && p.k > 0) return cost(p) < kWorthSharing ? multiply(p) : spread_prepacked(host, p);
  const bool direct = gemm_table<T>().small(p);
  // Packing is a job of its own: the product must justify two.
  if (p.k == 0 || cost(p) < (direct ? 1 : 4) * kWorthSharing) return multiply(p);
  direct ? spread_direct(host, p) : spread_packed(host, p);
}

/// `count` products of the sizes of `first`; `at` gives each. Many or small ones get one thread each; others
/// run in sequence on all threads.
template <class T, class F>
void multiply_all(const Host& host, int64_t count, const Product<T>& first, F at) {
  if (first.m == 0 || first.n == 0 || count == 0) return;
  constexpr int64_t kMany = 16;
  const int64_t each = std::max<int64_t>(1, cost(first));
  if (count < kMany && each >= kMany * kWorthSharing) {
    for (int64_t i = 0; i < count; ++i) spread(host, at(i));
    return;
  }
  if (count == 1) return spread(host, at(0));
  const int64_t grain = count * each < kWorthSharing ? count : (kPart + each - 1) / each;
  host.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) multiply(at(i));
  });
}

}  // namespace weft::native
