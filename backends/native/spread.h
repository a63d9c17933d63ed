#pragma once
#include <algorithm>

#include "backends/native/gemm.h"
#include "backends/native/scratch.h"
#include "weft/backend.hpp"

// Products on all threads.
namespace weft::native {

using backend::Host;

// One block of rows: what a thread packs of b is used by nobody else, so each makes its columns alone.
template <class T>
void spread_columns(const Host& host, const Product<T>& p, int64_t panel) {
  host.parallel_for((p.n + panel - 1) / panel, 2, [&](int64_t begin, int64_t end) {
    multiply(p.part(0, p.m, begin * panel, std::min(p.n, end * panel) - begin * panel));
  });
}

// One large product on all threads: a block of b is packed by all of them, then each takes pieces of c.
template <class T>
void spread(const Host& host, const Product<T>& p) {
  const Blocks b = blocks_of(p);
  const int64_t row_blocks = (p.m + b.rows - 1) / b.rows;
  if (row_blocks == 1) return spread_columns(host, p, b.panel);
  T* packed = scratch<T>(Scratch::packed_b, b.b_size);
  for (int64_t j = 0; j < p.n; j += b.columns) {
    const int64_t columns = std::min(b.columns, p.n - j), panels = (columns + b.panel - 1) / b.panel;
    const Product<T> part = p.part(0, p.m, j, columns);
    // Few blocks of rows: their columns are cut as well, so that every thread has some. Each cut packs a
    // again.
    const int64_t cuts = std::clamp<int64_t>(8 / row_blocks, 1, panels);
    for (int64_t k = 0; k < p.k; k += b.depth) {
      const int64_t depth = std::min(b.depth, p.k - k);
      host.parallel_for(
          panels, std::max<int64_t>(1, 32768 / (b.panel * depth)),
          [&](int64_t begin, int64_t end) { gemm_table<T>().pack_b(part, k, depth, begin, end, packed); });
      host.parallel_for(row_blocks * cuts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const int64_t i = t / cuts * b.rows, cut = t % cuts;
          gemm_table<T>().block(part, k, depth, i, std::min(p.m, i + b.rows), panels * cut / cuts,
                                panels * (cut + 1) / cuts, packed);
        }
      });
    }
  }
}

// What a product costs, in multiply-adds of a large one. With few rows it is what it takes to read b.
template <class T>
int64_t cost(const Product<T>& p) {
  constexpr int64_t kRowsOfReading = 16;
  return std::max(p.m, kRowsOfReading) * p.n * p.k;
}

// A product that is not packed, in pieces of c that are worth a thread.
template <class T>
void spread_direct(const Host& host, const Product<T>& p, int64_t step) {
  const int64_t each = std::max<int64_t>(1, cost(p.part(0, p.m, 0, step))),
                grain = std::max<int64_t>(1, (int64_t{1} << 18) / each);
  host.parallel_for((p.n + step - 1) / step, grain, [&](int64_t begin, int64_t end) {
    gemm_table<T>().direct(p.part(0, p.m, begin * step, std::min(p.n, end * step) - begin * step));
  });
}

/// `count` products of the sizes of `first`; `at` gives each. Many, or small ones, go to a thread each;
/// otherwise all threads make one after the other.
template <class T, class F>
void multiply_all(const Host& host, int64_t count, const Product<T>& first, F at) {
  const int64_t macs = cost(first);
  if (first.m == 0 || first.n == 0 || count == 0) return;
  constexpr int64_t kWorthAThread = int64_t{1} << 19;  // about 10 us: ten times what it takes to share it
  if (first.k == 0 || macs < kWorthAThread || count >= 8) {
    const int64_t grain = std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(1, macs));
    return host.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) multiply(at(i));
    });
  }
  for (int64_t i = 0; i < count; ++i) {
    const Product<T> one = at(i);
    if (gemm_table<T>().small(one)) {
      spread_direct(host, one, one.m <= 8 ? std::clamp<int64_t>(one.n / 4 / 64 * 64, 64, 1024) : 64);
    } else {
      spread(host, one);
    }
  }
}

}  // namespace weft::native
