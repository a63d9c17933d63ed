#include "conformance/seam/chain.h"

#include <algorithm>
#include <limits>

#include "conformance/stopwatch.h"

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

// Until a copy behind the launches has ended, for which copy_out waits. The least of several times: the first
// one may contain what is done once, and on a busy machine a thread may wait for milliseconds to be run.
static double seconds_behind(Rig& rig, Chain& chain, int launches) {
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 5; ++round) {
    float unused = 0;
    chain.launch(*rig.queue, launches);
    const Stopwatch watch;
    raise_if(rig.queue->copy_out(&unused, *chain.last().buffer.get(), 0, sizeof unused));
    least = std::min(least, watch.seconds());
  }
  return least;
}

LastingChain longer(Rig& rig, LastingChain it) {
  constexpr int64_t kMostElements = int64_t{1} << 22;
  constexpr int kMostLaunches = 10'000;
  const int64_t elements = it.chain->last().type.shape[0];
  if (elements < kMostElements)
    it.chain = std::make_unique<Chain>(rig, 1, std::min(4 * elements, kMostElements));
  else if (it.launches < kMostLaunches)
    it.launches = std::min(2 * it.launches, kMostLaunches);
  else
    it.chain.reset();
  return it;
}

LastingChain lasting_chain(Rig& rig, int least) {
  constexpr double kSeconds = 5e-3;
  LastingChain it{std::make_unique<Chain>(rig, 1), least};
  while (it.chain && seconds_behind(rig, *it.chain, it.launches) < kSeconds) it = longer(rig, std::move(it));
  return it;
}

}  // namespace weft::conformance
