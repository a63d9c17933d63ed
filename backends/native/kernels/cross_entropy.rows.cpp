#include <atomic>
#include <cmath>
#include <vector>

#include "backends/native/row_launch.h"
#include "backends/native/rows.h"
#include "weft/shared/numbers.hpp"

// Each row's loss is log(sum(exp(x - max))) - (x[target] - max); they are summed in the order of the rows.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (auto s = shared::arity(c, 2, 1); !s) return s;
  const TypeView x = c.input(0), target = c.input(1);
  if (x.dtype() != DType::f32 && x.dtype() != DType::f16 && x.dtype() != DType::bf16)
    return Support::no("dtype must be f32, f16 or bf16, got {}", x.dtype());
  if (auto s = shared::same_dtype(x, c.output(0)); !s) return s;
  if (target.dtype() != DType::i32 && target.dtype() != DType::i64)
    return Support::no("targets must be i32 or i64, got {}", target.dtype());
  if (x.rank() == 2 && target.rank() == 1 && x.max()[0] == target.max()[0] && c.output(0).rank() == 0)
    return Support::yes();
  return Support::no("wants [n, classes] and [n] to a scalar, got {} and {}", x.max(), target.max());
}

static int64_t target_of(TensorView t, int64_t row) {
  return t.dtype() == DType::i32 ? t.data<int32_t>()[row] : t.data<int64_t>()[row];
}

static Outcome launch(const Launch& l) {
  const TensorView x = l.input(0), target = l.input(1), y = l.output(0);
  const int64_t rows = x.dim(0), classes = x.dim(1);
  const Stored stored = stored_float(x.dtype());
  std::vector<double> loss(static_cast<size_t>(rows));
  std::atomic<int64_t> bad = -1;
  l.host().parallel_for(
      rows, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, classes)), [&](int64_t begin, int64_t end) {
        float* wide = stored == Stored::f32 ? nullptr : scratch<float>(Scratch::rows, classes);
        for (int64_t r = begin; r < end; ++r) {
          const int64_t t = target_of(target, r);
          if (t < 0 || t >= classes) {
            bad = r;
            continue;
          }
          const float* row = x.data<float>() + r * classes;
          if (wide) widen(stored, x.data<uint16_t>() + r * classes, wide, classes), row = wide;
          const float top = max(row, classes);
          loss[static_cast<size_t>(r)] =
              std::log(exp_of_row(row, top, nullptr, classes)) - (double{row[t]} - double{top});
        }
      });
  if (bad >= 0)
    return Outcome::fail(WEFT_INVALID_ARGUMENT, "target {} of row {} is outside [0, {})",
                         target_of(target, bad), bad.load(), classes);
  double total = 0;
  for (const double v : loss) total += v;
  shared::visit<shared::Kinds::floats>(y.dtype(), [&]<class T>(shared::Tag<T>) {
    *y.data<T>() = shared::store<T>(total / static_cast<double>(rows));
  });
  return Outcome::ok();
}

extern const KernelRecord cross_entropy_rows = {
    .op = "cross_entropy", .variant = "rows", .accepts = accepts, .launch = launch};

}  // namespace weft::native
