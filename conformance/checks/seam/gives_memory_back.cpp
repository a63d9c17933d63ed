#include <unistd.h>

#include <cstdio>

#include "conformance/check.h"
#include "conformance/seam/usual.h"

namespace weft::conformance {
namespace {

// Bytes of this process that are in memory.
uint64_t resident() {
  unsigned long all = 0, here = 0;
  if (FILE* f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%lu %lu", &all, &here) != 2) here = 0;
    std::fclose(f);
  }
  return here * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Twelve times what one round has must not stay with the process. Memory of a device of its own is not seen
// here.
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
  const uint64_t before = resident();
  for (int i = 0; i < kRounds; ++i) once();
  const uint64_t after = resident();
  const uint64_t more = after > before ? after - before : 0;
  return Found::wrong(
      more < kRounds * kBytes / 2
          ? ""
          : fmt::format("{} MiB stayed after {} buffers of 16 MiB were freed", more >> 20, kRounds));
}

Found nothing_at_all(Rig& rig) {
  const auto none = value_or_raise(rig.device.allocate_unpooled(0));
  return Found::wrong(none.get() ? "" : "an allocation of 0 bytes gave nothing to name it by");
}

// More than there is: refused in words, and all goes on.
Found too_much(Rig& rig) {
  const auto too_large = rig.device.allocate_unpooled(uint64_t{1} << 60);
  if (too_large.ok()) return Found::wrong("2^60 bytes were given");
  if (too_large.status().message().empty()) return Found::wrong("2^60 bytes were refused without a word");
  return Found::wrong(differs(rig, {"add", {counting({4}), counting({4})}}, "after it"));
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  run.run("buffers that were freed", [&] { return rounds(rig); });
  run.run("no bytes", [&] { return nothing_at_all(rig); });
  run.run("more than there is", [&] { return too_much(rig); });
}

}  // namespace

extern const Check gives_memory_back_check = {
    "gives_memory_back", "what is freed can be had again, what can not be had is refused in words", run};

}  // namespace weft::conformance
