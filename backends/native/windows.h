#pragma once
#include <cstdint>

#include "backends/native/tail.h"

// Products of windows of an image with packed filters, in the best instruction set of this machine. Windows
// are read where they lie: no column of them is gathered.
namespace weft::native {

/// Rows of windows, a row for each place of the result: its element q is x[places[row] + offsets[q]].
struct WindowRows {
  const float* x;
  const int64_t* places;
  int64_t rows;
  const int64_t* offsets;
};

/// Where sums go, turned: y[filter step + row]; nowhere if null. The tail is that of y.
struct Turned {
  float* y = nullptr;
  int64_t step = 0;
  Tail tail = {};
};

/// c (+)= elements [first, first + depth) of the rows times a panel that GemmTable::pack_b packed, and `to`
/// gets c turned. `columns` of the panel count; c has rows as wide as a panel. Meanwhile `next`, a panel as
/// deep, comes to the L2 cache.
void multiply_windows(const WindowRows& w, int64_t first, int64_t depth, const float* panel,
                      const float* next, int64_t columns, float* c, bool accumulate, const Turned& to);

}  // namespace weft::native
