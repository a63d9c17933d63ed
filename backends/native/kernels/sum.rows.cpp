#include <vector>

#include "backends/native/fold.h"
#include "backends/native/rows.h"

// Rows in pieces of a fixed size, whose sums are added in order: the bits depend neither on the number of
// threads nor on how many rows there are.
namespace weft::native {

using namespace weft::backend;

static constexpr int64_t kPiece = 1 << 16;

static float sum_of_row(const float* x, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; i += kPiece) total += sum(x + i, std::min(kPiece, n - i));
  return static_cast<float>(total);
}

static float sum_of_all(const Host& host, const float* x, int64_t n) {
  std::vector<double> part(static_cast<size_t>((n + kPiece - 1) / kPiece));
  host.parallel_for(static_cast<int64_t>(part.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      part[static_cast<size_t>(i)] = sum(x + i * kPiece, std::min(kPiece, n - i * kPiece));
  });
  double total = 0;
  for (const double v : part) total += v;
  return static_cast<float>(total);
}

// A thousand rows in f32, and double beyond, as in rows.
static void sum_columns(float* to, const float* x, int64_t rows, int64_t step, int64_t n) {
  constexpr int64_t kRows = 1024;
  double total[kColumns] = {};
  alignas(64) float block[kColumns];
  for (int64_t r = 0; r < rows; r += kRows) {
    std::fill_n(block, n, 0.0f);
    for (int64_t i = r; i < std::min(rows, r + kRows); ++i) add_to(block, x + i * step, n);
    for (int64_t c = 0; c < n; ++c) total[c] += static_cast<double>(block[c]);
  }
  for (int64_t c = 0; c < n; ++c) to[c] = static_cast<float>(total[c]);
}

static Outcome launch(const Launch& l) {
  return fold(
      l, 0, sum_of_row, [&](const float* x, int64_t n) { return sum_of_all(l.host(), x, n); }, sum_columns);
}

extern const KernelRecord sum_rows = {
    .op = "sum", .variant = "rows", .reads = {"axes", "keep"}, .accepts = accepts_fold, .launch = launch};

}  // namespace weft::native
