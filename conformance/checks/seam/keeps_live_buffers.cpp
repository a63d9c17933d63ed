#include <algorithm>
#include <thread>

#include "conformance/check.h"
#include "conformance/seam/patterns.h"
#include "conformance/seam/usual.h"

// Many buffers live at once, each with its own pattern, while others come and go and kernels run: a buffer
// that shares memory with another, or was reused too early, loses its pattern.
namespace weft::conformance::checks::keeps_live_buffers {
namespace {

/// Buffers of random sizes.
class Herd {
 public:
  Herd(const std::string& backend, uint64_t seed, size_t least, size_t most)
      : rig_(backend), random_(seed), least_(least), most_(most), key_(seed << 32) {
    if (const uint64_t device = rig_.device.capability().max_buffer) most_ = std::min<size_t>(most, device);
  }

  size_t bytes() const { return bytes_; }
  void grow() {
    held_.push_back(hold(rig_, drawn_size(random_, least_, most_), ++key_));
    bytes_ += held_.back().bytes;
  }
  /// Drops so many random ones, once the queue is done with them.
  void drop(size_t n) {
    raise_if(rig_.queue->synchronize());
    for (; n > 0 && !held_.empty(); --n) {
      std::swap(held_[random_.bits() % held_.size()], held_.back());
      bytes_ -= held_.back().bytes;
      held_.pop_back();
    }
  }
  /// Ordinary work at the same time; returns what is wrong with its answer.
  Finding work() {
    const auto calls = usual_calls();
    return differs(rig_, calls[random_.bits() % calls.size()], "a launch among many buffers");
  }
  /// Checks one in `share` of them.
  Finding look(size_t share = 1) {
    for (const Held& one : held_)
      if (random_.bits() % share == 0)
        if (auto words = spoilt(rig_, one); !words.empty())
          return fmt::format("{} while {} others lived, {} MiB in all", words, held_.size() - 1,
                             bytes_ >> 20);
    return overlapping();
  }
  size_t count() const { return held_.size(); }

 private:
  // If handles are addresses, overlap shows without reading memory.
  Finding overlapping() const {
    if (!rig_.device.host_memory()) return {};
    std::vector<std::pair<uintptr_t, size_t>> all;
    for (const Held& one : held_)
      all.emplace_back(reinterpret_cast<uintptr_t>(one.buffer->handle), one.bytes);
    std::ranges::sort(all);
    for (size_t i = 0; i + 1 < all.size(); ++i)
      if (all[i].first + all[i].second > all[i + 1].first)
        return fmt::format("a buffer of {} bytes reaches {} bytes into one of {}", all[i].second,
                           all[i].first + all[i].second - all[i + 1].first, all[i + 1].second);
    return {};
  }

  Rig rig_;
  Random random_;
  size_t least_, most_, bytes_ = 0;
  uint64_t key_;  // herds of different threads have different patterns
  std::vector<Held> held_;
};

Found small_ones(const CheckRun& run) {
  Herd herd(run.backend(), run.options().seed, 1, 9000);
  const bool fast = value_or_raise(seam::registry().open(run.backend()))->host_memory();
  const size_t n = fast ? 2500 : 400;
  while (herd.count() < n) herd.grow();
  auto found = herd.look();
  for (int round = 0; round < 4 && found.empty(); ++round) {
    if (round % 2)
      std::jthread([&] {
        herd.drop(n / 2);
      }).join();  // memory may be freed by another thread than the one that allocated it
    else
      herd.drop(n / 2);
    while (herd.count() < n) herd.grow();
    if (found = herd.work(); found.empty()) found = herd.look();
  }
  return Found::wrong(found);
}

Found large_ones(const CheckRun& run) {
  constexpr size_t kInAll = 160 << 20;
  const auto& memory = value_or_raise(seam::registry().open(run.backend()))->capability().memory;
  const size_t most = memory ? std::min<size_t>(kInAll, memory / 4) : kInAll;
  Herd herd(run.backend(), run.options().seed, 1 << 14, most / 7);
  Finding found;
  for (int round = 0; round < 5 && found.empty(); ++round) {
    while (herd.bytes() < most) herd.grow();
    if (found = herd.work(); found.empty()) found = herd.look(3);
    if (found.empty() && round < 4) herd.drop(herd.count() / 3);
  }
  return Found::wrong(found.empty() ? herd.look() : found);
}

// The host holds no lock while it allocates.
Found of_many_threads(const CheckRun& run) {
  constexpr size_t kThreads = 4, kBuffers = 120;
  std::vector<std::string> said(kThreads);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        try {
          Herd herd(run.backend(), run.options().seed * kThreads + i, 1, 200'000);
          for (int round = 0; round < 4 && said[i].empty(); ++round) {
            while (herd.count() < kBuffers) herd.grow();
            said[i] = herd.look();
            herd.drop(kBuffers / 2);
          }
        } catch (const std::exception& e) {
          said[i] = e.what();
        }
      });
  }
  for (const auto& words : said)
    if (!words.empty()) return Found::wrong("on one of four threads: " + words);
  return {};
}

void run(CheckRun& run) {
  run.run("many small ones", [&] { return small_ones(run); });
  run.run("of many threads", [&] { return of_many_threads(run); });
  run.run("dozens of large ones", [&] { return large_ones(run); });
}

}  // namespace

extern const Check check = {"keeps_live_buffers",
                            "buffers keep what they hold while others come and go and kernels run", run};

}  // namespace weft::conformance::checks::keeps_live_buffers
