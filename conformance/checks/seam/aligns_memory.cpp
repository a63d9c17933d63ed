#include "conformance/check.h"
#include "conformance/seam/usual.h"

namespace weft::conformance::checks::aligns_memory {
namespace {

// Several at once: one block may be aligned by chance.
Found several(Rig& rig, uint64_t bytes) {
  constexpr uintptr_t kAlignment = 64;  // weft_backend.allocate
  std::vector<seam::BufferRef> all;
  for (int i = 0; i < 16; ++i) {
    const auto& b = all.emplace_back(value_or_raise(rig.device.allocate_unpooled(bytes)));
    if (const uintptr_t past = reinterpret_cast<uintptr_t>(b->handle) % kAlignment)
      return Found::wrong(fmt::format("{} bytes begin {} behind a multiple of {}", bytes, past, kAlignment));
  }
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  if (!rig.device.host_memory())
    return run.run("any size", [] {
      return Found::skipped("a handle is no address there: where memory begins can't be seen");
    });
  for (const uint64_t bytes : {1, 16, 24, 64, 100, 1000, 4097, 70'000, 1 << 20})
    run.run(fmt::format("{} bytes", bytes), [&] { return several(rig, bytes); });
}

}  // namespace

extern const Check check = {"aligns_memory",
                            "memory begins where the seam says that it does: at a multiple of 64 bytes", run};

}  // namespace weft::conformance::checks::aligns_memory
