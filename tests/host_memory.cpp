#include "host_memory.h"

#if WEFT_WATCHES_HOST_MEMORY
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

constinit std::atomic<int64_t> allocations{0};
constinit thread_local int64_t left = -1;  // negative: no end of them

void* allocated(std::size_t n, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (left >= 0 && left-- == 0) throw std::bad_alloc();
  n = (std::max<std::size_t>(n, 1) + alignment - 1) / alignment * alignment;
  if (void* p = std::aligned_alloc(alignment, n)) return p;
  throw std::bad_alloc();
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t n) { return allocated(n, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new(std::size_t n, std::align_val_t a) {
  return allocated(n, static_cast<std::size_t>(a));
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace weft::testing {

int64_t host_allocations() { return allocations; }
void refuse_host_allocation_after(int64_t n) { left = n; }

}  // namespace weft::testing
#endif
