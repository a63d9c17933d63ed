#include <vector>

#include "backends/native/fold.h"
#include "backends/native/rows.h"

// Rows are summed in pieces of a fixed size, added in order: the bits depend neither on the number of threads
// nor on the number of rows.
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

// In blocks of rows, whose number depends on the sizes alone: f32 within a block, double across blocks.
static void sum_columns(const Host& host, float* to, const float* x, int64_t rows, int64_t outputs) {
  const int64_t block = std::clamp<int64_t>((rows + 15) / 16, 32, 1024), blocks = (rows + block - 1) / block,
                pieces = (outputs + kColumns - 1) / kColumns;
  std::vector<float> part(static_cast<size_t>(blocks * outputs));
  // Columns in the cache are summed so fast that a few microseconds of work are not worth sharing.
  const int64_t grain = rows * outputs < 4 * shared::kGrain
                            ? blocks * pieces
                            : shared::grain_for(block * std::min(outputs, kColumns));
  host.parallel_for(blocks * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t % pieces * kColumns, b = t / pieces, n = std::min(kColumns, outputs - first);
      float* sum = part.data() + b * outputs + first;
      for (int64_t i = b * block; i < std::min(rows, (b + 1) * block); ++i)
        add_to(sum, x + i * outputs + first, n);
    }
  });
  each_piece(host, blocks, outputs, [&](int64_t first, int64_t n) {
    for (int64_t c = first; c < first + n; ++c) {
      double total = 0;
      for (int64_t b = 0; b < blocks; ++b) total += double{part[static_cast<size_t>(b * outputs + c)]};
      to[c] = static_cast<float>(total);
    }
  });
}

static Outcome launch(const Launch& l) {
  return fold(
      l, 0, sum_of_row, [&](const float* x, int64_t n) { return sum_of_all(l.host(), x, n); },
      [&](float* to, const float* x, int64_t rows, int64_t outputs) {
        sum_columns(l.host(), to, x, rows, outputs);
      });
}

extern const KernelRecord sum_rows = {
    .op = "sum", .variant = "rows", .reads = {"axes", "keep"}, .accepts = accepts_fold, .launch = launch};

}  // namespace weft::native
