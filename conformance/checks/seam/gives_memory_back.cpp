#include <malloc.h>
#include <unistd.h>

#include <cstdio>

#include "conformance/check.h"
#include "conformance/seam/usual.h"

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_UNDER_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_UNDER_ASAN
#endif
#endif
#if defined(WEFT_UNDER_ASAN)
#include <sanitizer/allocator_interface.h>
#endif

namespace weft::conformance {
namespace {

// Bytes of this process that are in memory, but for those that only malloc keeps: how much that is depends on
// the holes that whoever ran before has left.
uint64_t resident() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
  unsigned long all = 0, here = 0;
  if (FILE* f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%lu %lu", &all, &here) != 2) here = 0;
    std::fclose(f);
  }
  return here * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// By how many bytes so many rounds grow what `measure` tells; 0 where that stays below `least` once in two
// tries.
template <class F>
uint64_t grown(uint64_t (*measure)(), int rounds, uint64_t least, F once) {
  uint64_t more = 0;
  for (int again = 0; again < 2; ++again) {
    const uint64_t before = measure();
    for (int i = 0; i < rounds; ++i) once();
    const uint64_t after = measure();
    more = after > before ? after - before : 0;
    if (more < least) return 0;
  }
  return more;
}

// Twelve times what one round has must not stay with the process, but once: a cache of bounded size, such as
// a sanitizer's quarantine, is full then. Memory of a device of its own is not seen here.
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
  const uint64_t more = grown(resident, kRounds, kRounds * kBytes / 2, once);
  if (!more) return {};
  return Found::wrong(
      fmt::format("{} MiB stayed after {} buffers of 16 MiB were freed", more >> 20, kRounds));
}

// Bytes that malloc has given out and not had back, the plug-in's among them.
uint64_t held() {
#if defined(WEFT_UNDER_ASAN)
  return ::__sanitizer_get_current_allocated_bytes();
#elif defined(__GLIBC__)
  const auto now = ::mallinfo2();
  return now.uordblks + now.hblkhd;
#else
  return 0;
#endif
}

bool held_is_told() {
  const uint64_t before = held();
  const auto probe = std::make_unique<std::byte[]>(1 << 20);
  [[maybe_unused]] std::byte* volatile seen = probe.get();  // or a compiler leaves out what nobody looks at
  return held() >= before + (1 << 20);
}

// Whatever is kept for good is kept after the first rounds; what grows with each of them is lost.
template <class F>
Found grows(const char* what, F once) {
  constexpr int kWarm = 32, kRounds = 256;
  if (!held_is_told())
    return Found::skipped("the malloc that is in use does not say how much it has given out");
  for (int i = 0; i < kWarm; ++i) once();
  const uint64_t more = grown(held, kRounds, 64 * kRounds, once);
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
  run.run("plans", [&] { return plans(rig); });
  run.run("launches", [&] { return launches(rig); });
  run.run("launches that failed", [&] { return failures(rig); });
  run.run("no bytes", [&] { return nothing_at_all(rig); });
  run.run("more than there is", [&] { return too_much(rig); });
}

}  // namespace

extern const Check gives_memory_back_check = {
    "gives_memory_back", "what is freed can be had again, what can not be had is refused in words", run};

}  // namespace weft::conformance
