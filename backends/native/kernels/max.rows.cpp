#include <cmath>

#include "backends/native/fold.h"
#include "backends/native/rows.h"

namespace weft::native {

using namespace weft::backend;

static Outcome launch(const Launch& l) {
  return fold(l, -HUGE_VALF, max, max, [&](float* to, const float* x, int64_t rows, int64_t outputs) {
    each_piece(l.host(), rows, outputs, [=](int64_t first, int64_t n) {
      std::fill_n(to + first, n, -HUGE_VALF);
      for (int64_t i = 0; i < rows; ++i) max_to(to + first, x + i * outputs + first, n);
    });
  });
}

extern const KernelRecord max_rows = {
    .op = "max", .variant = "rows", .reads = {"axes", "keep"}, .accepts = accepts_fold, .launch = launch};

}  // namespace weft::native
