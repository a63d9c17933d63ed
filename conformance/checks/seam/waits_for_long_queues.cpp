#include "conformance/check.h"
#include "conformance/seam/usual.h"

// Chains of launches, each on the result of the one before: what synchronize says has passed is read through
// another queue, which knows nothing of the first one's order.
namespace weft::conformance {
namespace {

constexpr int64_t kElements = 50'000;

/// y += 1, over and over, between two buffers.
class Chain {
 public:
  explicit Chain(Rig& rig, seam::Queue& queue, double first) : rig_(rig), queue_(queue), first_(first) {
    const auto one = array({1}, {1}), x = array({kElements}, {first});
    plan_ = value_or_raise(rig.plan(value_or_raise(describe({"add", {x, one}}))));
    one_ = value_or_raise(rig.upload(one));
    for (auto& side : sides_) side = value_or_raise(rig.upload(x));
    workspace_ = value_or_raise(rig.workspace(plan_->prepared));
    raise_if(rig.queue->synchronize());
  }
  void launch(int n) {
    for (; n > 0; --n, ++done_) {
      const weft_tensor* in[] = {&sides_[done_ % 2]->c, &one_->c};
      const weft_tensor* out[] = {&sides_[1 - done_ % 2]->c};
      raise_if(seam::launch(*plan_, queue_, in, out, workspace_ ? &workspace_->c : nullptr));
    }
  }
  /// What is wrong with what lies there now, in the eyes of another queue.
  Finding wrong() {
    const auto got = numbers(value_or_raise(rig_.download(*sides_[done_ % 2])));
    for (size_t i = 0; i < got.size(); ++i)
      if (got[i] != first_ + static_cast<double>(done_))
        return fmt::format("after {} launches, element {} is {}, wanted {}", done_, i, got[i],
                           first_ + static_cast<double>(done_));
    return {};
  }

 private:
  Rig& rig_;
  seam::Queue& queue_;
  double first_;
  seam::PlanPtr plan_;
  std::unique_ptr<Rig::Operand> one_, sides_[2], workspace_;
  size_t done_ = 0;
};

Found after(Rig& rig, int launches) {
  const auto queue = value_or_raise(rig.device.open_queue());
  Chain chain(rig, *queue, 5);
  chain.launch(launches);
  raise_if(queue->synchronize());
  return Found::wrong(chain.wrong());
}

// Many queues with work in them, asked in another order than they were filled; half of them close early.
Found many_queues(Rig& rig) {
  constexpr size_t kQueues = 12;
  std::vector<std::unique_ptr<seam::Queue>> queues;
  std::deque<Chain> chains;
  for (size_t i = 0; i < kQueues; ++i) {
    queues.push_back(value_or_raise(rig.device.open_queue()));
    chains.emplace_back(rig, *queues.back(), static_cast<double>(100 * i));
  }
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < kQueues; ++i)
      if (queues[i]) chains[i].launch(static_cast<int>(1 + 5 * i));
    for (size_t i = kQueues; i-- > 0;) {
      if (queues[i]) raise_if(queues[i]->synchronize());
      if (auto words = chains[i].wrong(); !words.empty())
        return Found::wrong(fmt::format("queue {} of {}: {}", i, kQueues, words));
    }
    for (size_t i = static_cast<size_t>(round); i < kQueues; i += 3)
      if (i % 2) queues[i].reset();
  }
  return {};
}

// Copies in the same queue as launches, in each direction, and nobody waits: each is in its turn.
Found copies_between(Rig& rig) {
  constexpr size_t kBytes = kElements * sizeof(float);
  const auto x = value_or_raise(rig.upload(array({kElements}, {0}))),
             y = value_or_raise(rig.upload(array({kElements}, {0}))),
             step = value_or_raise(rig.upload(array({1}, {0})));
  const auto plan =
      value_or_raise(rig.plan(value_or_raise(describe({"add", {array({kElements}, {0}), array({1}, {0})}}))));
  const auto workspace = value_or_raise(rig.workspace(plan->prepared));
  std::vector<float> seen(kElements);
  float sum = 0;
  for (int i = 1; i <= 40; ++i) {
    float next = static_cast<float>(i);
    raise_if(rig.queue->copy_in(*step->buffer.get(), 0, &next, sizeof next));
    next = -1000, sum += static_cast<float>(i);
    const weft_tensor *in[] = {&x->c, &step->c}, *out[] = {&y->c};
    raise_if(seam::launch(*plan, *rig.queue, in, out, workspace ? &workspace->c : nullptr));
    raise_if(rig.queue->copy(*x->buffer.get(), 0, *y->buffer.get(), 0, kBytes));
    if (i % 7) continue;
    raise_if(rig.queue->copy_out(seen.data(), *x->buffer.get(), 0, kBytes));
    for (size_t k = 0; k < seen.size(); ++k)
      if (seen[k] != sum)
        return Found::wrong(
            fmt::format("a copy behind launch {} sees {} in element {}, wanted {}", i, seen[k], k, sum));
  }
  raise_if(rig.queue->synchronize());
  return {};
}

// Two launches that read the same operand, with nothing between: the first may not use it as its own.
Found one_operand_for_two(Rig& rig) {
  const Ask ask{"sort", {counting({7, 33})}};
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  auto a = value_or_raise(rig.place(*plan, ask)), b = value_or_raise(rig.place(*plan, ask));
  b.c_in = a.c_in;
  raise_if(rig.enqueue(*plan, a));
  raise_if(rig.enqueue(*plan, b));
  raise_if(rig.queue->synchronize());
  const auto first = value_or_raise(rig.read(a)), second = value_or_raise(rig.read(b));
  return Found::wrong(first.outputs[0].bytes == second.outputs[0].bytes
                          ? ""
                          : "the second of two launches with one operand gives another answer");
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (const int n : {1, 7, 40, 150, 700})
    run.run(fmt::format("{} launches", n), [&] { return after(rig, n); });
  run.run("many queues", [&] { return many_queues(rig); });
  run.run("copies between launches", [&] { return copies_between(rig); });
  run.run("one operand for two launches", [&] { return one_operand_for_two(rig); });
}

}  // namespace

extern const Check waits_for_long_queues_check = {
    "waits_for_long_queues", "however long a queue is, synchronize waits for all of it, and for no other",
    run};

}  // namespace weft::conformance
