#include <chrono>

#include "conformance/check.h"
#include "conformance/seam/chain.h"

// The device's own clock, against the host's: what the lab times kernels by.
namespace weft::conformance::checks::stamps_tell_the_time {
namespace {

using Clock = std::chrono::steady_clock;

double nanoseconds(Clock::duration d) { return std::chrono::duration<double, std::nano>(d).count(); }

// As many as were enqueued, from 0 on, never backwards; and none are left.
Found in_order(Rig& rig, int stamps) {
  const auto queue = value_or_raise(rig.device.open_queue());
  Chain chain(rig, 1);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < stamps; ++i) {
      raise_if(queue->stamp());
      chain.launch(*queue, i % 3);
    }
    const auto times = value_or_raise(queue->read_stamps());
    for (size_t i = 0; i < times.size(); ++i)
      if (times[i] < (i ? times[i - 1] : 0) || (i == 0 && times[0] != 0))
        return Found::wrong(fmt::format("stamp {} of {} is at {} ns, behind one at {}", i, times.size(),
                                        times[i], i ? times[i - 1] : 0));
  }
  if (auto left = value_or_raise(queue->read_stamps()); !left.empty())
    return Found::wrong(fmt::format("{} stamps are left after they were read", left.size()));
  raise_if(queue->synchronize());
  return Found::wrong(chain.wrong());
}

// Two stamps around work that lasts. The device comes to the first after it was asked for and before a point
// behind it was waited for; to the second after the host last saw that a point before it was not reached, and
// before the host has read both.
Found around_work(Rig& rig) {
  if (!rig.device.ordered()) return Found::skipped("its queues are inline: the host's clock tells as much");
  const auto [chain, launches] = lasting_chain(rig, 4);
  if (!chain) return Found::skipped(fmt::format("{} launches end as soon as they are enqueued", launches));
  const auto queue = value_or_raise(rig.device.open_queue());
  for (int round = 0; round < 4; ++round) {
    const auto asked = Clock::now();
    raise_if(queue->stamp());
    (void)value_or_raise(queue->await(value_or_raise(queue->mark())));
    const auto first = Clock::now();
    chain->launch(*queue, launches);
    const uint64_t end = value_or_raise(queue->mark());
    raise_if(queue->stamp());
    auto not_yet = first;
    for (auto now = Clock::now(); value_or_raise(queue->reached()) < end; now = Clock::now()) not_yet = now;
    const auto times = value_or_raise(queue->read_stamps());
    const auto seen = Clock::now();
    // Clocks of two machines differ by less than a thousandth, and a device's ticks are up to a microsecond.
    const double took = static_cast<double>(times.at(1)), least = 0.999 * nanoseconds(not_yet - first) - 2e3,
                 most = 1.001 * nanoseconds(seen - asked) + 2e3;
    if (took < least || took > most)
      return Found::wrong(
          fmt::format("by its stamps work took {:.0f} ns; by the host's clock it took {:.0f} to {:.0f}", took,
                      least, most));
  }
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  if (!rig.queue->has_stamps()) {
    run.run("none", [] { return Found::skipped("the device has no clock of its own"); });
    return;
  }
  for (const int n : {1, 2, 100}) run.run(fmt::format("{} stamps", n), [&] { return in_order(rig, n); });
  run.run("around work", [&] { return around_work(rig); });
}

}  // namespace

extern const Check check = {"stamps_tell_the_time",
                            "the times that a queue notes are in order, and those of the host's clock", run};

}  // namespace weft::conformance::checks::stamps_tell_the_time
