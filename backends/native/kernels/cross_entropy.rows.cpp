#include <cmath>
#include <vector>

#include "backends/native/rows.h"
#include "backends/native/targets_of_rows.h"

// Each row's loss is log(sum(exp(x - max))) - (x[target] - max), or 0 if the row is ignored; losses are
// summed in the order of the rows.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (auto s = accepts_classes(c, 2); !s) return s;
  return accepts_loss(c.input(0), c.output(0));
}

static Outcome launch(const Launch& l) {
  const TensorView x = l.input(0), y = l.output(0);
  const int64_t rows = x.dim(0), classes = x.dim(1);
  const Targets target(l);
  int64_t counted = 0;
  if (Outcome o = target.count(counted); !o.good()) return o;
  const Stored stored = stored_float(x.dtype());
  std::vector<double> loss(static_cast<size_t>(rows));
  l.host().parallel_for(
      rows, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, classes)), [&](int64_t begin, int64_t end) {
        float* wide = stored == Stored::f32 ? nullptr : scratch<float>(Scratch::rows, classes);
        for (int64_t r = begin; r < end; ++r) {
          if (!target.counts(r)) continue;
          const float* row = x.data<float>() + r * classes;
          if (wide) widen(stored, x.data<uint16_t>() + r * classes, wide, classes), row = wide;
          const float top = max(row, classes);
          loss[static_cast<size_t>(r)] =
              std::log(exp_of_row(row, top, nullptr, classes)) - (double{row[target[r]]} - double{top});
        }
      });
  double total = 0;
  for (const double v : loss) total += v;
  store_loss(y, total / target.divisor(counted));
  return Outcome::ok();
}

extern const KernelRecord cross_entropy_rows = {
    .op = "cross_entropy",
    .variant = "rows",
    .reads = {"ignore_index", "wide", "summed"},
    .accepts = accepts,
    .launch = launch,
};

}  // namespace weft::native
