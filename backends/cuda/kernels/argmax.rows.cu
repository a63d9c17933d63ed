#include <algorithm>

#include "../rows.hpp"

// Where the largest element of each row stands. A long row is shared out among blocks; the last one to end
// joins what they found.
namespace weft::cuda {

using namespace backend;

namespace {

constexpr int kThreads = 256, kColumns = 2048;  // of a block, at least
constexpr int kMostShares = 64;

/// Larger is better: the element, NaN above all, then the place, the earlier the better.
using Key = unsigned long long;

__device__ inline Key key_of(float x, int column) {
  const uint32_t bits = as_bits(x + 0.0f);  // one zero
  const uint32_t order = x != x ? ~0u : bits >> 31 ? ~bits : bits | 0x80000000u;
  return Key{order} << 32 | ~static_cast<uint32_t>(column);
}
__device__ inline Key larger(Key a, Key b) { return a > b ? a : b; }

__device__ inline Key largest_of_block(Key best) {
  __shared__ Key of_warps[kThreads / 32];
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) best = larger(best, shuffle_xor(best, apart));
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = best;
  sync_block();
  for (const Key k : of_warps) best = larger(best, k);
  return best;
}

/// Blocks x: the shares of a row; y: rows. A share leaves its key in `found`, in two numbers.
template <class T>
__global__ void __launch_bounds__(kThreads)
    find_largest(const T* x, int* y, int columns, float* found, int* counters) {
  __shared__ int ended_before;
  let_next_kernel_start();
  wait_for_kernels_before();
  const int shares = static_cast<int>(gridDim.x), share = static_cast<int>(blockIdx.x),
            row = static_cast<int>(blockIdx.y);
  const T* const from = x + int64_t{row} * columns;
  Key best = 0;
#pragma unroll 4
  for (int c = share * kThreads + static_cast<int>(threadIdx.x); c < columns; c += shares * kThreads)
    best = larger(best, key_of(widened(from[c]), c));
  best = largest_of_block(best);
  if (shares > 1) {
    float* const all = found + int64_t{row} * shares * 2;
    if (threadIdx.x == 0) {
      all[2 * share] = as_float(static_cast<uint32_t>(best >> 32));
      all[2 * share + 1] = as_float(static_cast<uint32_t>(best));
      fence_device();
      ended_before = atomicAdd(counters + row, 1);
    }
    sync_block();
    if (ended_before != shares - 1) return;
    if (threadIdx.x == 0) counters[row] = 0;
    fence_device();
    best = 0;
    if (const int i = static_cast<int>(threadIdx.x); i < shares)
      best = Key{as_bits(load_shared_by_blocks(all + 2 * i))} << 32 |
             as_bits(load_shared_by_blocks(all + 2 * i + 1));
    best = largest_of_block(best);
  }
  if (threadIdx.x == 0) y[row] = static_cast<int>(~static_cast<uint32_t>(best));
}

Support accepts(const OpCall& c) {
  if (auto last = last_axis(c); !last) return last;
  if (auto s = takes_rows(c.input(0)); !s) return s;
  const auto sizes = c.input(0).max();
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < sizes.size(); ++d) rows *= sizes[d];
  return rows < 65536 ? Support::yes() : Support::no("at most 65,535 rows, got {}", rows);
}

Outcome launch(const Launch& l) {
  const TensorView x = l.input(0), y = l.output(0);
  const auto [rows, columns] = row_sizes(x);
  if (rows == 0) return Outcome::ok();
  const int64_t useful = std::min<int64_t>((columns + kColumns - 1) / kColumns, kMostShares),
                shares = rows <= kCounters ? std::clamp<int64_t>(kPartials / 2 / rows, 1, useful) : 1;
  const Grid grid{static_cast<unsigned>(shares), static_cast<unsigned>(rows)};
  Queue& queue = queue_of(l);
  return with_type(x.dtype(), [&]<class T>(T*) {
    return start(l, grid, kThreads, 0, find_largest<T>, x.data<const T>(), y.data<int>(), columns,
                 queue.partials, queue.counters());
  });
}

}  // namespace

std::span<const KernelRecord> argmax_rows() {
  static const KernelRecord all[] = {
      {.op = "argmax", .variant = "rows", .reads = {"axis", "keep"}, .accepts = accepts, .launch = launch}};
  return all;
}

}  // namespace weft::cuda
