#include <filesystem>

#include "conformance/check.h"
#include "conformance/seam/memory_use.h"
#include "conformance/seam/usual.h"

namespace weft::conformance::checks::gives_memory_back {
namespace {

// The process must not keep twelve rounds' worth of memory. One round's worth is fine: bounded caches, such
// as a sanitizer's quarantine, fill up first. Memory of a discrete device is not seen here.
Found rounds(Rig& rig) {
  constexpr uint64_t kBytes = 16 << 20;
  constexpr int kRounds = 12;
  const std::vector<std::byte> ones(kBytes, std::byte{1});
  const auto once = [&] {
    const auto b = value_or_raise(rig.device.allocate_unpooled(kBytes));
    raise_if(rig.queue->copy_in(*b.get(), 0, ones.data(), kBytes));
    raise_if(rig.queue->synchronize());
  };
  once(), once();
  const uint64_t more = grown_by(resident_bytes, kRounds, kRounds * kBytes / 2, once);
  if (!more) return {};
  return Found::wrong(
      fmt::format("{} MiB stayed after {} buffers of 16 MiB were freed", more >> 20, kRounds));
}

// Permanent allocations are made in the first rounds; growth after that is a leak.
template <class F>
Found grows(const char* what, F once) {
  constexpr int kWarm = 32, kRounds = 256;
  if (!held_is_told())
    return Found::skipped("the malloc that is in use does not say how much it has given out");
  for (int i = 0; i < kWarm; ++i) once();
  const uint64_t more = grown_by(held_bytes, kRounds, 64 * kRounds, once);
  if (!more) return {};
  return Found::wrong(fmt::format("{} bytes stayed after {} {}", more, kRounds, what));
}

Ask a_sum() { return {"sum", {counting({7, 5})}, {{"axes", Shape{1}}}}; }
Ask beyond_the_end() { return {"gather", {counting({4}), array({1}, {70}, DType::i64)}}; }

Found plans(Rig& rig) {
  const auto call = value_or_raise(describe(a_sum()));
  return grows("plans", [&] {
    (void)value_or_raise(rig.plan(call));
    raise_if(rig.queue->synchronize());
  });
}
Found launches(Rig& rig) {
  const Ask ask = a_sum();
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  return grows("launches", [&] { (void)value_or_raise(rig.launch(*plan, ask)); });
}
Found queues(Rig& rig) {
  return grows("queues", [&] {
    const auto queue = value_or_raise(rig.device.open_queue());
    raise_if(queue->synchronize());
  });
}
Found copies(Rig& rig) {
  const auto a = value_or_raise(rig.upload(counting({100}))), b = value_or_raise(rig.upload(counting({100})));
  raise_if(rig.queue->synchronize());  // a case that is left out frees them at once
  return grows("copies", [&] {
    raise_if(rig.queue->copy(*a->buffer.get(), 4, *b->buffer.get(), 8, 101));
    (void)value_or_raise(rig.download(*a));
  });
}
// Threads and open files of this process.
size_t entries(const char* folder) {
  std::error_code none;
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder, none), {}));
}
Found threads_and_files(Rig& rig) {
  const Ask ask = a_sum();
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  const auto once = [&] {
    Rig other(rig.device);
    (void)value_or_raise(other.launch(*plan, ask));
  };
  constexpr size_t kRounds = 40;
  for (size_t i = 0; i < kRounds / 4; ++i) once();
  for (const char* folder : {"/proc/self/task", "/proc/self/fd"}) {
    const size_t before = entries(folder);
    for (size_t i = 0; i < kRounds; ++i) once();
    if (const size_t after = entries(folder); after >= before + kRounds / 2)
      return Found::wrong(fmt::format("{} had {} entries before {} queues were used and closed, and {} after",
                                      folder, before, kRounds, after));
  }
  return {};
}
Found failures(Rig& rig) {
  if (rig.device.capability().dialect[0])
    return Found::skipped("text cannot raise: a wild index gives NaN there (docs/primitives.md)");
  const Ask ask = beyond_the_end();
  return grows("launches that failed", [&] { (void)rig.run(ask).ok(); });
}

Found nothing_at_all(Rig& rig) {
  const auto none = value_or_raise(rig.device.allocate_unpooled(0));
  return Found::wrong(none.get() ? "" : "an allocation of 0 bytes gave nothing to name it by");
}

// More memory than exists: refused with a reason, and work goes on.
Found too_much(Rig& rig) {
  const auto too_large = rig.device.allocate_unpooled(uint64_t{1} << 60);
  if (too_large.ok()) return Found::wrong("2^60 bytes were given");
  if (too_large.status().message().empty()) return Found::wrong("2^60 bytes were refused without a word");
  return Found::wrong(differs(rig, {"add", {counting({4}), counting({4})}}, "after it"));
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  run.run("buffers that were freed", [&] { return rounds(rig); });
  run.run("plans", [&] { return plans(rig); });
  run.run("launches", [&] { return launches(rig); });
  run.run("queues", [&] { return queues(rig); });
  run.run("threads and files", [&] { return threads_and_files(rig); });
  run.run("copies", [&] { return copies(rig); });
  run.run("launches that failed", [&] { return failures(rig); });
  run.run("no bytes", [&] { return nothing_at_all(rig); });
  run.run("more than there is", [&] { return too_much(rig); });
}

}  // namespace

extern const Check check = {"gives_memory_back",
                            "what is freed can be had again, what can not be had is refused in words", run};

}  // namespace weft::conformance::checks::gives_memory_back
