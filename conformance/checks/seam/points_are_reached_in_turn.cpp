#include <chrono>
#include <thread>

#include "conformance/check.h"
#include "conformance/seam/chain.h"
#include "conformance/stopwatch.h"

// Points of queues. For a backend without points the host provides them, with the same promises.
namespace weft::conformance::checks::points_are_reached_in_turn {
namespace {

using QueuePtr = std::unique_ptr<seam::Queue>;

QueuePtr open(Rig& rig) { return value_or_raise(rig.device.open_queue()); }

// Work before a point is complete when the point is reached, and points increase.
Found reached_when_passed(Rig& rig, int launches) {
  const auto queue = open(rig);
  Chain chain(rig, 5);
  uint64_t before = 0;
  for (int round = 0; round < 4; ++round) {
    chain.launch(*queue, launches);
    const uint64_t point = value_or_raise(queue->mark());
    if (point <= before) return Found::wrong(fmt::format("point {} comes after point {}", point, before));
    const uint64_t reached = value_or_raise(queue->await(point));
    if (reached < point)
      return Found::wrong(fmt::format("point {} was waited for, and {} is reached", point, reached));
    if (auto words = chain.wrong(); !words.empty()) return Found::wrong("its point is reached; " + words);
    before = point;
  }
  raise_if(queue->synchronize());
  return {};
}

// Without a wait the work proceeds, and no matter how often a point is queried, it is not reached early.
Found reached_by_itself(Rig& rig) {
  const auto queue = open(rig);
  Chain chain(rig, 1);
  chain.launch(*queue, 90);
  const uint64_t point = value_or_raise(queue->mark());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (value_or_raise(queue->reached()) < point) {
    if (std::chrono::steady_clock::now() > end) return Found::wrong("a marked queue does not move by itself");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return Found::wrong(chain.wrong());
}

// Waits with a timeout that is too short, repeatedly.
Found awaited_in_pieces(Rig& rig) {
  const auto queue = open(rig);
  Chain chain(rig, 2);
  chain.launch(*queue, 120);
  const uint64_t point = value_or_raise(queue->mark());
  for (int tries = 0; value_or_raise(queue->await(point, 50'000)) < point; ++tries)
    if (tries == 400'000) return Found::wrong("a point is not reached in 20 s of waiting for it");
  return Found::wrong(chain.wrong());
}

// Two queues take turns at one chain without waits by the host: each step depends on the wait before it.
Found queues_in_turns(Rig& rig, size_t n, int rounds, int launches) {
  std::vector<QueuePtr> queues;
  for (size_t i = 0; i < n; ++i) queues.push_back(open(rig));
  Chain chain(rig, 7);
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < n; ++i) {
      chain.launch(*queues[i], launches);
      const uint64_t point = value_or_raise(queues[i]->mark());
      raise_if(queues[(i + 1) % n]->wait(*queues[i], point));
    }
  raise_if(queues[0]->synchronize());  // waits for everything before it
  return Found::wrong(chain.wrong());
}

// One queue has work, the others have none; a new one waits for all of them, marked beforehand or one by one.
Found one_of_many(Rig& rig) {
  constexpr size_t kQueues = 5;
  std::vector<QueuePtr> queues;
  for (size_t i = 0; i < kQueues; ++i) queues.push_back(open(rig));
  for (size_t busy = 0; busy < kQueues; ++busy)
    for (const bool marked_before : {true, false}) {
      Chain chain(rig, static_cast<double>(busy));
      chain.launch(*queues[busy], 50);
      const auto after = open(rig);
      uint64_t points[kQueues];
      for (size_t i = 0; i < kQueues; ++i) {
        points[i] = value_or_raise(queues[i]->mark());
        if (!marked_before) raise_if(after->wait(*queues[i], points[i]));
      }
      for (size_t i = 0; i < kQueues && marked_before; ++i) raise_if(after->wait(*queues[i], points[i]));
      chain.launch(*after, 1);
      raise_if(after->synchronize());
      if (auto words = chain.wrong(); !words.empty())
        return Found::wrong(fmt::format("after a wait for queue {} of {}: {}", busy, kQueues, words));
    }
  return {};
}

// A queue has as much work before one point as between it and a second one, and a copy that waits for the
// second one takes no time. A wait for the wrong point shows only if work goes on when the copy begins, and a
// busy machine begins it late. So another queue waits for the first point and copies as much: a round counts
// if that copy ended while most of the work was left, and after any other there is more work.
Found waited_for_by_a_copy(Rig& rig) {
  if (!rig.device.ordered())
    return Found::skipped("its queues are inline: a launch has ended when it returns");
  constexpr int kRounds = 8;
  LastingChain work{std::make_unique<Chain>(rig, 1)};
  const auto zero = array({1}, {0});
  const auto seen = value_or_raise(rig.upload(zero));
  const auto from = value_or_raise(rig.upload(zero)), to = value_or_raise(rig.upload(zero));
  raise_if(rig.queue->synchronize());
  const auto before = open(rig), after = open(rig), beside = open(rig);
  for (int timely = 0; timely < kRounds;) {
    const Stopwatch watch;
    work.chain->launch(*before, work.launches);
    const uint64_t first = value_or_raise(before->mark());
    work.chain->launch(*before, work.launches);
    const uint64_t second = value_or_raise(before->mark());
    raise_if(beside->wait(*before, first));
    raise_if(beside->copy(*to->buffer.get(), 0, *from->buffer.get(), 0, sizeof(float)));
    raise_if(after->wait(*before, second));
    const Rig::Operand& last = work.chain->last();
    const uint64_t end = static_cast<uint64_t>(last.type.shape[0] - 1) * sizeof(float);
    raise_if(after->copy(*seen->buffer.get(), 0, *last.buffer.get(), end, sizeof(float)));
    raise_if(beside->synchronize());
    const double copied = watch.seconds();
    raise_if(before->synchronize());
    const double left = watch.seconds() - copied;
    raise_if(after->synchronize());
    const double got = numbers(value_or_raise(rig.download(*seen)))[0];
    const double wanted = numbers(value_or_raise(rig.download(last))).back();
    if (got != wanted)
      return Found::wrong(fmt::format("{} launches: a copy behind the wait for a point sees {}, wanted {}",
                                      work.launches, got, wanted));
    if (left > copied / 2)
      ++timely;
    else
      work = longer(rig, std::move(work));
    if (!work.chain)
      return Found::skipped(fmt::format("{} launches end as soon as they are enqueued", work.launches));
  }
  return {};
}

// The point of a queue that was closed meanwhile.
Found of_a_closed_queue(Rig& rig) {
  const auto after = open(rig);
  Chain chain(rig, 3);
  for (int i = 0; i < 6; ++i) {
    auto before = open(rig);
    chain.launch(*before, 20);
    const uint64_t point = value_or_raise(before->mark());
    raise_if(after->wait(*before, point));
    before.reset();
    chain.launch(*after, 1);
    raise_if(after->synchronize());
  }
  return Found::wrong(chain.wrong());
}

// Another thread waits while this one keeps filling the queue.
Found awaited_elsewhere(Rig& rig) {
  const auto queue = open(rig);
  Chain chain(rig, 4);
  chain.launch(*queue, 60);
  const uint64_t point = value_or_raise(queue->mark());
  Result<uint64_t> reached = uint64_t{0};
  std::thread other([&] { reached = queue->await(point); });
  Chain more(rig, 9);
  more.launch(*queue, 60);
  other.join();
  if (value_or_raise(std::move(reached)) < point)
    return Found::wrong("a point that another thread waited for is not reached");
  if (auto words = chain.wrong(); !words.empty()) return Found::wrong(words);
  raise_if(queue->synchronize());
  return Found::wrong(more.wrong());
}

// A point does not cover later work: two queues may wait for each other's past forever without deadlock.
Found crossing_waits(Rig& rig) {
  const auto a = open(rig), b = open(rig);
  Chain left(rig, 1), right(rig, 2);
  for (int i = 0; i < 20; ++i) {
    left.launch(*a, 3), right.launch(*b, 3);
    const uint64_t of_a = value_or_raise(a->mark()), of_b = value_or_raise(b->mark());
    left.launch(*a, 3), right.launch(*b, 3);
    raise_if(a->wait(*b, of_b));
    raise_if(b->wait(*a, of_a));
  }
  raise_if(a->synchronize());
  raise_if(b->synchronize());
  if (auto words = left.wrong(); !words.empty()) return Found::wrong(words);
  return Found::wrong(right.wrong());
}

// The pool hands out memory that another queue has yet to read: the next writer is ordered after it.
Found given_out_again(Rig& rig) {
  const auto reader = open(rig);
  const auto old = array({Chain::kElements}, {-3}), fresh = array({Chain::kElements}, {8});
  seam::Queue& eager = rig.device.eager_queue();
  for (int round = 0; round < 6; ++round) {
    const auto kept = value_or_raise(rig.upload(fresh));
    raise_if(rig.queue->synchronize());
    Chain busy(rig, 1);
    const void* handle = nullptr;
    {
      const auto lent = value_or_raise(rig.device.allocate(old.bytes.size()));
      handle = lent->handle;
      raise_if(eager.copy_in(*lent.get(), 0, old.bytes.data(), old.bytes.size()));
      raise_if(reader->wait(eager, value_or_raise(eager.mark())));
      busy.launch(*reader, 40);
      raise_if(reader->copy(*kept->buffer.get(), 0, *lent.get(), 0, old.bytes.size()));
      rig.device.used(*lent.get(), *reader, value_or_raise(reader->mark()));
    }
    const auto again = value_or_raise(rig.device.allocate(old.bytes.size()));
    if (again->handle != handle) return Found::skipped("the pool gave other memory");
    raise_if(eager.copy_in(*again.get(), 0, fresh.bytes.data(), fresh.bytes.size()));
    raise_if(reader->synchronize());
    const auto got = numbers(value_or_raise(rig.download(*kept)));
    if (std::ranges::find(got, 8.0) != got.end())
      return Found::wrong("memory was written over while another queue was still to read it");
  }
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (const int n : {1, 9, 80})
    run.run(fmt::format("after {} launches", n), [&] { return reached_when_passed(rig, n); });
  run.run("nobody waits", [&] { return reached_by_itself(rig); });
  run.run("awaited in pieces", [&] { return awaited_in_pieces(rig); });
  run.run("two queues in turns", [&] { return queues_in_turns(rig, 2, 20, 3); });
  run.run("two queues, one launch a turn", [&] { return queues_in_turns(rig, 2, 60, 1); });
  run.run("five queues in turns", [&] { return queues_in_turns(rig, 5, 8, 7); });
  run.run("one busy queue of many", [&] { return one_of_many(rig); });
  run.run("waited for by a copy", [&] { return waited_for_by_a_copy(rig); });
  run.run("a queue that is closed", [&] { return of_a_closed_queue(rig); });
  run.run("awaited on another thread", [&] { return awaited_elsewhere(rig); });
  run.run("waits that cross", [&] { return crossing_waits(rig); });
  run.run("memory given out again", [&] { return given_out_again(rig); });
}

}  // namespace

extern const Check check = {"points_are_reached_in_turn",
                            "a point is reached when the work before it has passed, and a wait waits for it",
                            run};

}  // namespace weft::conformance::checks::points_are_reached_in_turn
