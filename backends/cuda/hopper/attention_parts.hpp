#pragma once
#include "../attention_call.hpp"
#include "../attention_order.hpp"
#include "tensor_copy.hpp"
#include "tensor_map.hpp"
#include "warpgroup.hpp"

// Parts that the kernels of attention for warpgroups share. A warpgroup has 64 rows of a tile; a thread has
// two of them, 8 apart, and of each two neighbouring columns in every 8: value i of a thread is in row
// row_of_thread() + 8 * (i / 2 % 2) and column i / 4 * 8 + column_of_thread() + i % 2.
namespace weft::cuda::hopper {

inline constexpr int kGroupThreads = 128, kGroupRows = 64, kPanel = 64;  // columns of a panel: 128 bytes

/// The same in all lanes of a warp, as the compiler is to know.
__device__ inline int group_of_thread() {
  return __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kGroupThreads, 0);
}
__device__ inline int thread_of_group() { return static_cast<int>(threadIdx.x) % kGroupThreads; }
__device__ inline int row_of_thread() {
  return thread_of_group() / kWarp * 16 + thread_of_group() % kWarp / 4;
}
__device__ inline int column_of_thread() { return thread_of_group() % 4 * 2; }

/// A tile of 16-bit elements in panels: kRows x kColumns.
template <int kRows, int kColumns>
struct Panels {
  static constexpr uint32_t kPanelBytes = kRows * kSwizzledRow, kBytes = kPanelBytes * (kColumns / kPanel);
};

/// Loads a tile, its rows from `row` on: panel by panel, and of each the kAtOnce rows that the map copies.
template <int kRows, int kColumns, int kAtOnce = kRows>
__device__ void load_panels(char* to, const CUtensorMap& map, Barrier& barrier, int row, int head,
                            int member) {
  for (int p = 0; p < kColumns / kPanel; ++p)
    for (int r = 0; r < kRows; r += kAtOnce)
      load_tile(to + p * Panels<kRows, kColumns>::kPanelBytes + r * kSwizzledRow, map, barrier, p * kPanel,
                row + r, head, member);
}

/// Plain bytes to shared memory: a multiple of 16, at multiples of 16. They count at the barrier.
__device__ inline void load_bytes(void* to, const void* from, uint32_t bytes, Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(&barrier))
      : "memory");
}

/// d = a bᵀ over the columns of both tiles: 64 rows of a, n rows of b.
template <class T, int n, int kColumns>
__device__ void multiply_rows(float (&d)[n / 2], const char* a, uint32_t panel_of_a, const char* b) {
  const uint64_t left = operand_at<Lies::along_k>(a), right = operand_at<Lies::along_k>(b);
#pragma unroll
  for (uint32_t k = 0; k < kColumns / 16; ++k) {
    const uint64_t inside = k % 4 * kNextSixteen<Lies::along_k>, panel = k / 4;
    Product<T, n>::run(d, left + (panel * panel_of_a >> 4) + inside,
                       right + (panel * Panels<n, kColumns>::kPanelBytes >> 4) + inside, k > 0);
  }
}

template <class T>
__device__ float low_of(uint32_t pair) {
  return widened(T{static_cast<uint16_t>(pair)});
}
template <class T>
__device__ float high_of(uint32_t pair) {
  if constexpr (std::is_same_v<T, bf16>)
    return as_float(pair & 0xffff0000u);
  else
    return widened(T{static_cast<uint16_t>(pair >> 16)});
}

/// Values of a tile as the left factor of a product, in kParts parts: each one rounds what those before it
/// have lost.
template <class T, int n, int kParts>
struct Factor {
  uint32_t part[kParts][n / 16][4];

  __device__ void set(const float (&s)[n / 2]) {
#pragma unroll
    for (int k = 0; k < n / 16; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float low = s[8 * k + 2 * i], high = s[8 * k + 2 * i + 1];
#pragma unroll
        for (int p = 0; p < kParts; ++p) {
          const uint32_t pair = part[p][k][i] = packed<T>(low, high);
          if (p + 1 < kParts) low -= low_of<T>(pair), high -= high_of<T>(pair);
        }
      }
  }
};

/// d (+)= a b: b is [n, kColumns] in panels of n rows.
template <class T, int kColumns, int n, int kParts>
__device__ void multiply_across(float (&d)[kColumns / 2], const Factor<T, n, kParts>& a, const char* b,
                                bool add) {
  const uint64_t right = operand_at<Lies::along_m>(b, Panels<n, kColumns>::kPanelBytes);
#pragma unroll
  for (int p = 0; p < kParts; ++p)
#pragma unroll
    for (int k = 0; k < n / 16; ++k)
      Product<T, kColumns, Lies::along_k, Lies::along_m>::run(
          d, a.part[p][k], right + k * kNextSixteen<Lies::along_m>, add || p > 0 || k > 0);
}

__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// The slot of a ring of copies, and the phase of its barriers.
template <int kStages>
struct Slot {
  int stage = 0;
  uint32_t phase = 0;
  __device__ void advance() {
    if (++stage == kStages) stage = 0, phase ^= 1;
  }
};

/// q, k, v or a tensor that lies like one, in tiles of some rows of one head.
inline TensorLayout<4> layout_of(const AttentionSizes& s, bool of_keys, int rows) {
  const Strides& by = of_keys ? s.k : s.q;
  const int64_t heads = of_keys ? s.heads / s.shared_by : s.heads, seq = of_keys ? s.seq_k : s.seq_q;
  return {{s.dim, seq, heads, s.batch}, {by.row, by.head, by.batch}, {kPanel, rows, 1, 1}};
}
inline Outcome map_of(CUtensorMap& map, DType type, const void* at, const AttentionSizes& s, bool of_keys,
                      int rows) {
  return make_tensor_map(&map, type, at, layout_of(s, of_keys, rows));
}
/// The same for a result, whose tiles are of kGroupRows.
inline Outcome map_of(StoreMap& map, cudaStream_t stream, DType type, void* at, const AttentionSizes& s,
                      bool of_keys) {
  return make_store_map(&map, stream, type, at, layout_of(s, of_keys, kGroupRows));
}

}  // namespace weft::cuda::hopper
