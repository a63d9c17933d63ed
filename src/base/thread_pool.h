#pragma once
#include <cstdint>

namespace weft {

/// How many threads parallel_for uses, this one included; 0 = as many as there are cores.
void set_thread_count(int n);
int thread_count();

using ParallelBody = void (*)(void* context, int64_t begin, int64_t end);

/// Calls body(begin, end) on pieces of [0, n) of at least `grain` elements; returns when all have run. Pieces
/// depend on n, grain and the thread count only. A call from inside a piece runs on the calling thread.
void parallel_for(int64_t n, int64_t grain, ParallelBody body, void* context);

}  // namespace weft
