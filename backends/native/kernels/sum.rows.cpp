#include <vector>

#include "backends/native/fold.h"
#include "backends/native/rows.h"

namespace weft::native {

using namespace weft::backend;

// In pieces of a fixed size, whose sums are added in order: the bits do not depend on the number of threads.
static float sum_of_all(const Host& host, const float* x, int64_t n) {
  constexpr int64_t kPiece = 1 << 16;
  std::vector<double> part(static_cast<size_t>((n + kPiece - 1) / kPiece));
  host.parallel_for(static_cast<int64_t>(part.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      part[static_cast<size_t>(i)] = sum(x + i * kPiece, std::min(kPiece, n - i * kPiece));
  });
  double total = 0;
  for (const double v : part) total += v;
  return static_cast<float>(total);
}

static Outcome launch(const Launch& l) {
  return fold(
      l, 0, [](const float* x, int64_t n) { return static_cast<float>(sum(x, n)); },
      [&](const float* x, int64_t n) { return sum_of_all(l.host(), x, n); }, add_to);
}

extern const KernelRecord sum_rows = {
    .op = "sum", .variant = "rows", .reads = {"axes", "keep"}, .accepts = accepts_fold, .launch = launch};

}  // namespace weft::native
