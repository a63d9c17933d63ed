#include "conformance/seam/chain.h"

namespace weft::conformance {

Chain::Chain(Rig& rig, double first, int64_t elements) : rig_(rig), first_(first) {
  const auto one = array({1}, {1}), x = array({elements}, {first});
  plan_ = value_or_raise(rig.plan(value_or_raise(describe({"add", {x, one}}))));
  one_ = value_or_raise(rig.upload(one));
  for (auto& side : sides_) side = value_or_raise(rig.upload(x));
  workspace_ = value_or_raise(rig.workspace(plan_->plan));
  raise_if(rig.queue->synchronize());
}

void Chain::launch(seam::Queue& queue, int n) {
  for (; n > 0; --n, ++done_) {
    const weft_tensor* in[] = {&sides_[done_ % 2]->c, &one_->c};
    const weft_tensor* out[] = {&sides_[1 - done_ % 2]->c};
    raise_if(seam::launch(*plan_, queue, in, out, workspace_ ? &workspace_->c : nullptr));
  }
}

Finding Chain::wrong_in(const HostTensor& seen) const {
  const auto got = numbers(seen);
  const double wanted = first_ + static_cast<double>(done_);
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i] != wanted)
      return fmt::format("after {} launches, element {} is {}, wanted {}", done_, i, got[i], wanted);
  return {};
}

}  // namespace weft::conformance
