#include "conformance/seam/memory_use.h"

#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <memory>

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

// How much memory malloc keeps depends on fragmentation by earlier cases.
uint64_t resident_bytes() {
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

uint64_t held_bytes() {
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
  const uint64_t before = held_bytes();
  const auto probe = std::make_unique<std::byte[]>(1 << 20);
  [[maybe_unused]] std::byte* volatile seen = probe.get();  // keeps the compiler from removing it
  return held_bytes() >= before + (1 << 20);
}

}  // namespace weft::conformance
