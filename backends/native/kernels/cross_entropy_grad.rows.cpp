#include "backends/native/rows.h"
#include "backends/native/targets_of_rows.h"
#include "weft/shared/numbers.hpp"

// Each row of the result is (softmax(x) - one_hot(target)) * dloss / n, in one pass over the row.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (auto s = shared::arity(c, 3, 1); !s) return s;
  if (auto s = shared::same_dtype(c.input(0), c.output(0)); !s) return s;
  if (auto s = shared::same_dtype(c.input(2), c.output(0)); !s) return s;
  if (!std::ranges::equal(c.input(0).max(), c.output(0).max()) || c.input(2).rank() != 0)
    return Support::no("wants a result like the logits and a scalar, got {} and {}", c.output(0).max(),
                       c.input(2).max());
  return accepts_classes(c);
}

static Outcome launch(const Launch& l) {
  const TensorView x = l.input(0), target = l.input(1);
  const int64_t rows = x.dim(0), classes = x.dim(1);
  if (const int64_t bad = row_without_class(target, classes); bad >= 0)
    return no_such_class(target, bad, classes);
  float dloss = 0;
  widen(stored_float(x.dtype()), l.input(2).data(), &dloss, 1);
  const auto share = static_cast<float>(double{dloss} / static_cast<double>(rows));
  for_rows(l, x, l.output(0), classes, [=](int64_t r, const float* from, float* to) {
    const double total = exp_of_row(from, max(from, classes), to, classes);
    affine(to, 0, static_cast<float>(double{share} / total), nullptr, nullptr, to, classes);
    to[target_of(target, r)] -= share;
  });
  return Outcome::ok();
}

extern const KernelRecord cross_entropy_grad_rows = {
    .op = "cross_entropy_grad", .variant = "rows", .accepts = accepts, .launch = launch};

}  // namespace weft::native
