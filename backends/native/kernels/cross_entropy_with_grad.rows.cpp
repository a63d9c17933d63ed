#include <cmath>
#include <vector>

#include "backends/native/rows.h"
#include "backends/native/targets_of_rows.h"
#include "weft/shared/numbers.hpp"

// cross_entropy and cross_entropy_grad from one pass over each row.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (auto s = accepts_classes(c, 3, 2); !s) return s;
  if (auto s = shared::same_dtype(c.input(0), c.output(0)); !s) return s;
  if (!std::ranges::equal(c.input(0).max(), c.output(0).max()))
    return Support::no("wants a gradient like the logits, got {}", c.output(0).max());
  if (c.updates() > 1) return Support::no("the loss has memory of its own");
  if (c.updates() != 0 && c.raw()->update_inputs[0] != 0) return Support::no("can only write over input 0");
  if (auto s = accepts_loss(c.input(0), c.output(1)); !s) return s;
  return accepts_loss(c.input(0), c.input(2));
}

static Outcome launch(const Launch& l) {
  const TensorView x = l.input(0), loss = l.output(1);
  const int64_t classes = x.dim(1);
  const Targets target(l);
  int64_t counted = 0;
  if (Outcome o = target.count(counted); !o.good()) return o;
  const double divisor = target.divisor(counted);
  float dloss = 0;
  widen(stored_float(l.input(2).dtype()), l.input(2).data(), &dloss, 1);
  const auto share = static_cast<float>(double{dloss} / divisor);
  std::vector<double> losses(static_cast<size_t>(x.dim(0)));
  for_rows(l, x, l.output(0), classes, [&](int64_t r, const float* from, float* to) {
    if (!target.counts(r)) return void(std::fill_n(to, classes, 0.0f));
    const float top = max(from, classes), logit = from[target[r]];
    const double total = exp_of_row(from, top, to, classes);
    losses[static_cast<size_t>(r)] = std::log(total) - (double{logit} - double{top});
    affine(to, 0, static_cast<float>(double{share} / total), nullptr, nullptr, to, classes);
    to[target[r]] -= share;
  });
  double sum = 0;
  for (const double v : losses) sum += v;
  shared::visit<shared::Kinds::floats>(
      loss.dtype(), [&]<class T>(shared::Tag<T>) { *loss.data<T>() = shared::store<T>(sum / divisor); });
  return Outcome::ok();
}

extern const KernelRecord cross_entropy_with_grad_rows = {
    .op = "cross_entropy_with_grad",
    .variant = "rows",
    .reads = {"ignore_index", "wide", "summed"},
    .accepts = accepts,
    .launch = launch,
    .in_place = true,
};

}  // namespace weft::native
