#include "backends/native/rows.h"
#include "backends/native/targets_of_rows.h"
#include "weft/shared/numbers.hpp"

// Each row of the result is (softmax(x) - one_hot(target)) * dloss / n, in one pass over the row; n is the
// number of rows that are not ignored. Ignored rows get zeros.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (auto s = accepts_classes(c, 3); !s) return s;
  if (auto s = shared::same_dtype(c.input(0), c.output(0)); !s) return s;
  if (!std::ranges::equal(c.input(0).max(), c.output(0).max()))
    return Support::no("wants a result like the logits, got {}", c.output(0).max());
  return accepts_loss(c.input(0), c.input(2));
}

static Outcome launch(const Launch& l) {
  const TensorView x = l.input(0);
  const int64_t classes = x.dim(1);
  const Targets target(l);
  int64_t counted = 0;
  if (Outcome o = target.count(counted); !o.good()) return o;
  float dloss = 0;
  widen(stored_float(l.input(2).dtype()), l.input(2).data(), &dloss, 1);
  const auto share = static_cast<float>(double{dloss} / target.divisor(counted));
  for_rows(l, x, l.output(0), classes, [=](int64_t r, const float* from, float* to) {
    if (!target.counts(r)) return void(std::fill_n(to, classes, 0.0f));
    const double total = exp_of_row(from, max(from, classes), to, classes);
    affine(to, 0, static_cast<float>(double{share} / total), nullptr, nullptr, to, classes);
    to[target[r]] -= share;
  });
  return Outcome::ok();
}

extern const KernelRecord cross_entropy_grad_rows = {
    .op = "cross_entropy_grad",
    .variant = "rows",
    .reads = {"ignore_index", "summed"},
    .accepts = accepts,
    .launch = launch,
    .in_place = true,
};

}  // namespace weft::native
