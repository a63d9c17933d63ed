#include "backends/native/targets_of_rows.h"

#include <cmath>
#include <vector>

#include "backends/native/rows.h"
#include "weft/shared/numbers.hpp"

namespace weft::native {

using namespace weft::backend;

Outcome slopes_of_rows(const Launch& l, double* loss) {
  const TensorView x = l.input(0);
  const int64_t classes = x.dim(1);
  const Targets target(l);
  int64_t counted = 0;
  if (Outcome o = target.count(counted); !o.good()) return o;
  const double divisor = target.divisor(counted);
  float dloss = 0;
  widen(stored_float(l.input(2).dtype()), l.input(2).data(), &dloss, 1);
  const auto share = static_cast<float>(double{dloss} / divisor);
  std::vector<double> losses(loss ? static_cast<size_t>(x.dim(0)) : 0);
  for_rows(l, x, l.output(0), classes, [&](int64_t r, const float* from, float* to) {
    if (!target.counts(r)) return void(std::fill_n(to, classes, 0.0f));
    const float top = max(from, classes), own = from[target[r]];
    const double total = exp_of_row(from, top, to, classes);
    if (loss) losses[static_cast<size_t>(r)] = std::log(total) - (double{own} - double{top});
    affine(to, 0, static_cast<float>(double{share} / total), nullptr, nullptr, to, classes);
    to[target[r]] -= share;
  });
  double sum = 0;
  for (const double v : losses) sum += v;
  if (loss) *loss = sum / divisor;
  return Outcome::ok();
}

void store_loss(TensorView to, double loss) {
  shared::visit<shared::Kinds::floats>(
      to.dtype(), [&]<class T>(shared::Tag<T>) { *to.data<T>() = shared::store<T>(loss); });
}

}  // namespace weft::native
