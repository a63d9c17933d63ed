#include "conformance/check.h"
#include "conformance/seam/chain.h"
#include "conformance/seam/usual.h"

// Chains of dependent launches. After synchronize, the result is read through another queue, which is not
// ordered with the first.
namespace weft::conformance::checks::waits_for_long_queues {
namespace {

Found after(Rig& rig, int launches) {
  const auto queue = value_or_raise(rig.device.open_queue());
  Chain chain(rig, 5);
  chain.launch(*queue, launches);
  raise_if(queue->synchronize());
  return Found::wrong(chain.wrong());
}

// However fast the device is. Queues are closed in between.
Found lasting(Rig& rig) {
  if (!rig.device.ordered())
    return Found::skipped("its queues are inline: a launch has ended when it returns");
  const auto [chain, launches] = lasting_chain(rig, 40);
  if (!chain) return Found::skipped(fmt::format("{} launches end as soon as they are enqueued", launches));
  constexpr int kQueues = 7;
  for (int i = 0; i < kQueues; ++i) {
    const auto queue = value_or_raise(rig.device.open_queue());
    chain->launch(*queue, launches);
    raise_if(queue->synchronize());
    if (const auto words = chain->wrong(); !words.empty())
      return Found::wrong(fmt::format("queue {} of {}, one after another: {}", i, kQueues, words));
  }
  return {};
}

// An inline queue has nothing to wait for: its launches are complete.
Found at_once(Rig& rig) {
  if (rig.device.ordered()) return Found::skipped("its queues may run later");
  const auto queue = value_or_raise(rig.device.open_queue());
  Chain chain(rig, 3);
  Finding words;
  for (int i = 0; i < 40 && words.empty(); ++i) chain.launch(*queue, 1), words = chain.wrong();
  raise_if(queue->synchronize());
  return Found::wrong(words.empty() ? "" : "before synchronize, " + words);
}

/// The structs that the host passes to a launch.
struct Structs {
  explicit Structs(const Rig::Placed& placed)
      : tensors{*placed.c_in[0], *placed.c_in[1], *placed.c_out[0]}, shape(tensors[0].dl.shape[0]) {
    for (auto& t : tensors) t.dl.shape = &shape;
  }
  Structs(const Structs&) = delete;
  /// Changes them, so that they would read and write elsewhere in the same memory.
  void spoil() { shape = 1, tensors[2].dl.data = tensors[0].dl.data, in[0] = &tensors[1]; }

  weft_tensor tensors[3];
  int64_t shape;
  const weft_tensor *in[2] = {&tensors[0], &tensors[1]}, *out[1] = {&tensors[2]};
};

// The host may reuse them as soon as launch returns.
Found structs_of_the_host(Rig& rig) {
  const Ask ask{"add", {counting({700}), counting({700}, 4)}};
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  std::vector<Rig::Placed> all;
  std::deque<Structs> structs;
  for (int i = 0; i < 20; ++i) {
    const auto& placed = all.emplace_back(value_or_raise(rig.place(*plan, ask)));
    auto& s = structs.emplace_back(placed);
    raise_if(seam::launch(*plan, *rig.queue, s.in, s.out, placed.workspace ? &placed.workspace->c : nullptr));
    s.spoil();
  }
  raise_if(rig.queue->synchronize());
  const auto a = numbers(ask.inputs[0]), b = numbers(ask.inputs[1]);
  for (const auto& placed : all) {
    const auto got = numbers(value_or_raise(rig.download(*placed.results[0])));
    for (size_t i = 0; i < got.size(); ++i)
      if (got[i] != a[i] + b[i])
        return Found::wrong(
            fmt::format("element {} is {}, wanted {}: it read structs that were the host's again", i, got[i],
                        a[i] + b[i]));
  }
  return {};
}

// Many queues with work, synchronized in another order than they were filled; half of them close early.
Found many_queues(Rig& rig) {
  constexpr size_t kQueues = 12;
  std::vector<std::unique_ptr<seam::Queue>> queues;
  std::deque<Chain> chains;
  for (size_t i = 0; i < kQueues; ++i) {
    queues.push_back(value_or_raise(rig.device.open_queue()));
    chains.emplace_back(rig, static_cast<double>(100 * i));
  }
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < kQueues; ++i)
      if (queues[i]) chains[i].launch(*queues[i], static_cast<int>(1 + 5 * i));
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

// One of many queues has work, each in turn. A wait for the wrong queue returns too early.
Found one_busy_queue_of_many(Rig& rig) {
  constexpr size_t kQueues = 6;
  std::vector<std::unique_ptr<seam::Queue>> queues;
  for (size_t i = 0; i < kQueues; ++i) queues.push_back(value_or_raise(rig.device.open_queue()));
  for (size_t i = 0; i < kQueues; ++i) {
    Chain chain(rig, static_cast<double>(10 * i));
    chain.launch(*queues[i], 60);
    raise_if(queues[i]->synchronize());
    if (auto words = chain.wrong(); !words.empty())
      return Found::wrong(fmt::format("queue {} of {}, the only busy one: {}", i, kQueues, words));
  }
  return {};
}

// Copies in the same queue as launches, in each direction, without waits: they run in order.
Found copies_between(Rig& rig) {
  constexpr int64_t kElements = 50'000;
  constexpr size_t kBytes = kElements * sizeof(float);
  const auto x = value_or_raise(rig.upload(array({kElements}, {0}))),
             y = value_or_raise(rig.upload(array({kElements}, {0}))),
             step = value_or_raise(rig.upload(array({1}, {0})));
  const auto plan =
      value_or_raise(rig.plan(value_or_raise(describe({"add", {array({kElements}, {0}), array({1}, {0})}}))));
  const auto workspace = value_or_raise(rig.workspace(plan->plan));
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

// Two launches read the same operand back to back: the first must not use it as scratch memory.
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
  run.run("launches that take long by the clock", [&] { return lasting(rig); });
  run.run("at once, where queues are inline", [&] { return at_once(rig); });
  run.run("structs of the host", [&] { return structs_of_the_host(rig); });
  run.run("many queues", [&] { return many_queues(rig); });
  run.run("one busy queue of many", [&] { return one_busy_queue_of_many(rig); });
  run.run("copies between launches", [&] { return copies_between(rig); });
  run.run("one operand for two launches", [&] { return one_operand_for_two(rig); });
}

}  // namespace

extern const Check check = {"waits_for_long_queues",
                            "however long a queue is, synchronize waits for all of it, and for no other",
                            run};

}  // namespace weft::conformance::checks::waits_for_long_queues
