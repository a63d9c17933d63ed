#pragma once
#include <algorithm>
#include <cstdint>

#include "backends/native/steps.h"
#include "backends/native/tail.h"

// Matrix products of the native backend: blocks that fit the caches, packed into panels that the register
// tile reads in order. Method: Goto and van de Geijn, Anatomy of high-performance matrix multiplication (ACM
// TOMS 34, 2008).
namespace weft::native {

/// c[m, n] = a[m, k] b[k, n] (+ start[n]), or c += where `accumulate`. Operands may be transposed: each has a
/// step along both axes, one of which is 1; c has rows without gaps in them.
template <class T>
struct Product {
  int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  int64_t a_row = 0, a_column = 1;
  const T* b = nullptr;
  int64_t b_row = 0, b_column = 1;
  T* c = nullptr;
  int64_t c_row = 0;
  bool accumulate = false;
  const T* start = nullptr;  ///< what each row of c begins with in place of zeros; not with `accumulate`
  /// f16 or bf16 instead of an f32 `b`, widened while it is packed; not for products that are small().
  const uint16_t* half_b = nullptr;
  Stored half_type = Stored::bf16;
  /// Instead of `b`: all of it, packed by pack_whole_b().
  const T* packed_b = nullptr;

  /// The part of the product for rows [i, i + rows) and columns [j, j + columns) of c.
  Product part(int64_t i, int64_t rows, int64_t j, int64_t columns) const {
    Product p = *this;
    p.m = rows, p.n = columns;
    p.a += i * a_row, p.c += i * c_row + j;
    if (half_b)
      p.half_b += j * b_column;
    else if (!packed_b)
      p.b += j * b_column;
    if (start) p.start += j;
    return p;
  }
};

/// Of one block, as of k: longer sums are added block by block.
constexpr int64_t kDepthBytes = 384 * 4;

/// How a product is cut. `columns` is a multiple of a panel's width.
struct Blocks {
  int64_t rows, columns, depth;
  int64_t panel;   ///< columns of c that one tile makes
  int64_t b_size;  ///< elements of one packed block of b
};
template <class T>
Blocks blocks_of(const Product<T>& p);
/// The offset in a packed b of the block that begins at row k and column j of b.
template <class T>
int64_t packed_at(const Product<T>& p, const Blocks& b, int64_t j, int64_t k) {
  const int64_t columns = std::min(b.columns, p.n - j);
  return j * p.k + (columns + b.panel - 1) / b.panel * b.panel * k;
}

/// The parts of a product, in the best instruction set of this machine.
template <class T>
struct GemmTable {
  int64_t lanes;       ///< elements of a vector
  int64_t panel_rows;  ///< packed rows of a come in multiples of it

  /// Whether the product is too small to gain from packing; then use `direct`.
  bool (*small)(const Product<T>&);
  void (*direct)(const Product<T>&);
  /// Rows [i0, i1) of a, columns [k0, k0 + depth): depth elements for each row, zeros up to a multiple of
  /// panel_rows.
  void (*pack_a)(const Product<T>&, int64_t k0, int64_t depth, int64_t i0, int64_t i1, T* to);
  /// Rows [k0, k0 + depth) of b, panels [first, last), each to its place: panel * width * depth from `to`.
  /// Zeros beyond the last column.
  void (*pack_b)(const Product<T>&, int64_t k0, int64_t depth, int64_t first, int64_t last, T* to);
  /// c (+)= a[i0 .. i1, k0 .. k0 + depth) times panels [first, last) of packed b. The first block of k
  /// overwrites c unless the product accumulates.
  void (*block)(const Product<T>&, int64_t k0, int64_t depth, int64_t i0, int64_t i1, int64_t first,
                int64_t last, const T* packed);
  /// c (+)= packed rows of a times b[depth, columns], whose rows are b_step apart and readable up to a whole
  /// vector. The tail is that of c; of f32 only, elsewhere it is empty.
  void (*strip)(const T* packed_a, int64_t rows, int64_t depth, const T* b, int64_t b_step, int64_t columns,
                T* c, int64_t c_row, bool accumulate, const Tail& tail);
};
template <class T>
const GemmTable<T>& gemm_table();
template <>
const GemmTable<float>& gemm_table();
template <>
const GemmTable<double>& gemm_table();

/// The whole product on this thread.
template <class T>
void multiply(const Product<T>& p);
/// With a packed b: rows [i0, i1) and columns [j0, j1) of c, the latter whole panels. As many rows of a at a
/// time as stay in L2 beside two panels of b.
template <class T>
void multiply_packed(const Product<T>& p, const Blocks& b, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  constexpr int64_t kTall = 128;
  if (i1 - i0 > kTall) {
    for (const int64_t parts = (i1 - i0 + kTall - 1) / kTall,
                       rows = ((i1 - i0 + parts - 1) / parts + 7) / 8 * 8;
         i0 < i1; i0 += rows)
      multiply_packed(p, b, i0, std::min(i1, i0 + rows), j0, j1);
    return;
  }
  for (int64_t j = j0 / b.columns * b.columns; j < j1; j += b.columns) {
    const Product<T> part = p.part(0, p.m, j, std::min(b.columns, p.n - j));
    const int64_t first = std::max(j0 - j, int64_t{0}) / b.panel,
                  last = (std::min(j1 - j, part.n) + b.panel - 1) / b.panel;
    for (int64_t k = 0; k < p.k; k += b.depth)
      gemm_table<T>().block(part, k, std::min(b.depth, p.k - k), i0, i1, first, last,
                            p.packed_b + packed_at(p, b, j, k));
  }
}

extern template void multiply<float>(const Product<float>&);
extern template void multiply<double>(const Product<double>&);

}  // namespace weft::native
