#pragma once
#include <cstdint>

// The test program's own operator new: counts allocations, and fails them on request. Sanitizer builds keep
// theirs: then nothing is counted or failed.
#if defined(__has_feature)
#define WEFT_HAS_FEATURE(name) __has_feature(name)
#else
#define WEFT_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || WEFT_HAS_FEATURE(address_sanitizer) || \
    WEFT_HAS_FEATURE(thread_sanitizer)
#define WEFT_WATCHES_HOST_MEMORY 0
#else
#define WEFT_WATCHES_HOST_MEMORY 1

namespace weft::testing {

/// Allocations so far, of all threads.
int64_t host_allocations();
/// On this thread, `n` more allocations succeed and the next one fails, once. Negative: none fails.
void refuse_host_allocation_after(int64_t n);

}  // namespace weft::testing
#endif
