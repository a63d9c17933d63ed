#include "lab/kernels/watch.h"

#include <algorithm>
#include <cmath>

#include "weft/random.h"

namespace weft::lab {
namespace {

constexpr uint64_t kMostGrowth = 4 << 20;  // bytes, in the timed turns of a process
constexpr double kPause = 0.02, kPatience = 0.5;

constexpr uint64_t kChanges = 64;         // before each launch
constexpr double kSecondsAChange = 1e-7;  // a changed number is in no other processor's cache
constexpr double kFactor = 2;

}  // namespace

Watch watch(const Contender& c) { return {memory_of(c.pid()), processors_of(c.pid())}; }

std::string meddled(const Contender& c, const Watch& begun, double launches, bool on_host) {
  const auto now = watch(c);
  if (on_host && now.memory.anonymous > begun.memory.anonymous + kMostGrowth)
    return fmt::format("its memory grew by {:.1f} MB in {:.0f} launches: it leaks",
                       1e-6 * static_cast<double>(now.memory.anonymous - begun.memory.anonymous), launches);
  if (now.processors != begun.processors)
    return fmt::format("it changed the processors that it may run on from {} to {}", begun.processors,
                       now.processors);
  if (const auto children = children_of(c.pid()); !children.empty())
    return fmt::format("it left a process running, {}", children[0]);
  return "";
}

std::string goes_on(Contender& c) {
  int threads = 0;
  // By what its threads want, not by what they get: other programs may have the processors.
  for (double waited = 0; waited < kPatience; waited += kPause)
    if ((threads = c.idle(kPause)) == 0) return "";
  return fmt::format("it goes on computing when it is asked nothing, in {} of its threads", threads);
}

Result<std::string> remembers(Seat& seat, const Operation& o, uint64_t launches, uint64_t seed) {
  launches = std::min(launches, kMostLaunches / kChanges);
  const auto seconds = [&](uint64_t changes, uint64_t turn_seed) -> Result<double> {
    WEFT_TRY(const auto turn,
             seat.turn(o, {.launches = launches, .edits_each = changes, .apart = true}, turn_seed));
    // By the processor's time, where that is less: on a busy machine other programs run between the launches.
    // Not where one number changes: now and then a process has used no time by its clock, and all others
    // would be too long beside that.
    const bool by_processor = changes > 1 && turn.ticks > 0;
    return (by_processor ? std::min(turn.seconds(), turn.cpu) : turn.seconds()) /
           static_cast<double>(launches);
  };
  double one = INFINITY, many = INFINITY;
  for (uint64_t i = 0; i < 6; ++i) {  // three times, and again where that looks bad
    WEFT_TRY(const double a, seconds(1, random_word(seed, 2 * i)));
    WEFT_TRY(const double b, seconds(kChanges, random_word(seed, 2 * i + 1)));
    one = std::min(one, a), many = std::min(many, b);
    if (i >= 2 && many <= kFactor * one + kChanges * kSecondsAChange) return std::string();
  }
  return fmt::format(
      "a launch takes {:.1f} us after {} changes of its operands and {:.1f} us after one: it "
      "computes only what changed",
      1e6 * many, kChanges, 1e6 * one);
}

}  // namespace weft::lab
