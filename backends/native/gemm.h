#pragma once
#include <cstdint>

// Matrix products of the native backend: blocks that fit the caches, packed into panels that the registers'
// tile reads in order. Method: Goto and van de Geijn, Anatomy of high-performance matrix multiplication (ACM
// TOMS 34, 2008).
namespace weft::native {

/// c[m, n] = a[m, k] b[k, n], or c += where `accumulate`. Operands may be transposed: each has a step along
/// both axes, one of which is 1; c has rows without gaps in them.
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

  /// The part of it that makes rows [i, i + rows) and columns [j, j + columns) of c.
  Product part(int64_t i, int64_t rows, int64_t j, int64_t columns) const {
    Product p = *this;
    p.m = rows, p.n = columns;
    p.a += i * a_row, p.b += j * b_column, p.c += i * c_row + j;
    return p;
  }
};

/// How a product is cut. `columns` is a multiple of a panel's width.
struct Blocks {
  int64_t rows, columns, depth;
  int64_t panel;   ///< columns of c that one tile makes
  int64_t b_size;  ///< elements of one packed block of b
};
template <class T>
Blocks blocks_of(const Product<T>& p);

/// Packs part of b, rows [k0, k0 + depth) and the columns of `panels` [first, last), into `to`: panel after
/// panel, depth x panel elements each, zeros beyond the last column.
template <class T>
void pack_b(const Product<T>& p, int64_t k0, int64_t depth, int64_t first, int64_t last, T* to);

/// c (+)= a[:, k0 .. k0 + depth) times packed b: rows [i0, i1), panels [first, last) of `packed`, which
/// begins at panel 0. The first block of k overwrites c unless the product accumulates.
template <class T>
void multiply_packed(const Product<T>& p, int64_t k0, int64_t depth, int64_t i0, int64_t i1, int64_t first,
                     int64_t last, const T* packed);

/// Whether the product is so small that packing costs more than it gains; then `multiply_direct` makes it.
template <class T>
bool small(const Product<T>& p);
template <class T>
void multiply_direct(const Product<T>& p);

/// The whole product on this thread.
template <class T>
void multiply(const Product<T>& p);

extern template void multiply<float>(const Product<float>&);
extern template void multiply<double>(const Product<double>&);

}  // namespace weft::native
