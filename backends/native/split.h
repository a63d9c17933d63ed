#pragma once
#include <cstdint>

// Products of f32 by the matrix unit that x86 calls AMX, which multiplies bf16 and adds up in f32. Each
// number is three bf16: x = p0 + p1 + p2, exactly, since each part has 8 bits of its own and f32 has 24. Of
// the nine products of parts the six largest are computed; the others are at most 2^-24 of |x y|. Six
// products of that unit take a third of the time of one by vectors.
//
// Both factors are cut in panels of 32 rows (of a) or columns (of b), and these in steps of 32 along k, with
// zeros beyond the end. A step is 3 parts of 2 tiles of 16 lines of 64 bytes: of a, a line is a row; of b, it
// is two neighbours along k for each of 16 columns.
//
// A part below 2^-126 is lost, as are numbers beyond bf16. So each row of a and column of b must have its
// largest number in a range; a panel where one has not is multiplied by vectors.
namespace weft::native {

inline constexpr int64_t kSplitPanel = 32, kSplitStep = 32;
inline constexpr int64_t kSplitStepBytes = 3 * 2 * 1024;

/// Whether this machine has the unit, and the system lets this process use it.
bool splits_products();

/// Of a panel of either factor.
constexpr int64_t split_panel_bytes(int64_t k) { return (k + kSplitStep - 1) / kSplitStep * kSplitStepBytes; }

/// An f32 matrix; element (i, q) is at i * line + q * along, where q counts along k.
struct Lines {
  const float* from;
  int64_t line, along;
};

/// Splits `count` <= 32 rows of a; along is 1. False if one is out of range; then the panel is not complete.
bool split_rows(const Lines& a, int64_t count, int64_t k, uint8_t* to);
/// Splits `count` <= 32 columns of b, either of whose steps is 1. False as above.
bool split_columns(const Lines& b, int64_t count, int64_t k, uint8_t* to);
/// Writes columns [j, j + 32) of that panel as they were, as 32 floats for each of k.
void join_columns(const uint8_t* panel, int64_t k, float* to);

/// Panels of a factor, which are `size` bytes apart.
struct SplitFactor {
  const uint8_t* panels;
  int64_t size;
};
struct SplitResult {
  float* c;
  int64_t c_row, rows, columns;
  bool accumulate;
  const float* start;  ///< by column, or null
};
/// c (+)= a b, from the first row and column of panels on.
void multiply_split(const SplitFactor& a, const SplitFactor& b, int64_t k, const SplitResult& to);

/// While it lives, this thread may multiply.
class SplitScope {
 public:
  SplitScope();
  ~SplitScope();
  SplitScope(const SplitScope&) = delete;
};

}  // namespace weft::native
