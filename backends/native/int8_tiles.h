#pragma once
#include <cstdint>

// Parts of products of 8-bit integers, in the best instruction set of this machine. Sums are i32, exactly,
// where k < 2^17: 2^17 products of -128 by -128 are the first that i32 does not hold.
//
// Both factors are cut in quads of 4 neighbors along k, with zeros of a beyond its end. A panel of a has
// `rows` rows, one of b `width` columns (rows of its memory); a quad of a panel is 4 bytes for each of them.
// The multiply-adds of x86 take bytes without a sign by bytes with one, so b is packed as b + 128; 128 times
// the sum of a's row, its excess, is taken off at the end. Sums may wrap on the way: modulo 2^32 they are
// right.
namespace weft::native {

/// Products of i8 are exact below this many terms.
inline constexpr int64_t kInt8Terms = int64_t{1} << 17;

constexpr int64_t quads_of(int64_t k) { return (k + 3) / 4; }

/// A matrix of i8 in rows of k.
struct Int8Rows {
  const int8_t* from;
  int64_t step;
  const int8_t* row(int64_t i) const { return from + i * step; }
};

/// c = (sums - excess) a_scale b_scale + bias, of one tile.
struct Int8Finish {
  const int32_t* sums;    ///< rows of `width`
  const int32_t* excess;  ///< by row
  int64_t rows, columns;
  const float* a_scale;  ///< by row
  const float* b_scale;  ///< by column, readable up to `width`
  const float* bias;     ///< as b_scale, or null
  float* c;
  int64_t c_row;
};

struct Int8Tiles {
  int64_t rows, width;
  /// A panel of `columns` <= width columns, each a row of b.
  void (*pack_b)(Int8Rows b, int64_t columns, int64_t k, uint8_t* to);
  /// sums = a (b + 128) for rows of one panel of a and columns of one of b; sums beyond them are undefined.
  void (*multiply)(const int8_t* a, const uint8_t* b, int64_t quads, int64_t rows, int64_t columns,
                   int32_t* sums);
  /// sums = a b without packing, rows of `width`; for a few rows.
  void (*dots)(Int8Rows a, int64_t rows, Int8Rows b, int64_t columns, int64_t k, int32_t* sums);
  void (*finish)(const Int8Finish& f);
};
const Int8Tiles& int8_tiles();

/// The largest tile there is.
inline constexpr int64_t kMostInt8Rows = 8, kMostInt8Width = 48;

/// Int8Tiles::multiply of 8 rows and 48 columns by VNNI's instruction of AVX-512, which multiplies and adds
/// 64 pairs; null where the processor has none.
using MultiplyInt8 = decltype(Int8Tiles::multiply);
MultiplyInt8 multiply_by_vnni();

}  // namespace weft::native
