#pragma once
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../cuda/device.hpp"
#include "threads.hpp"

// The language of kernels (backends/cuda/kernel.hpp), on a CPU.
#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __shared__ static  // one block runs at a time
#define threadIdx (::weft::emulated::place().thread)
#define blockIdx (::weft::emulated::place().block)
#define blockDim (::weft::emulated::place().threads)
#define gridDim (::weft::emulated::place().blocks)

namespace weft::cuda {

inline constexpr int kWarp = emulated::kWarp;
inline constexpr bool kHasMatrixUnits = true;

inline void sync_block() { emulated::sync_block(); }
inline void sync_warp() { emulated::sync_warp(); }
/// Whether blocks may have shared memory of any size.
inline constexpr bool kAnyShared = true;
/// Blocks run one after the other: a cluster is a block.
inline constexpr int kCluster = 1;
template <int>
void sync_cluster() {
  sync_block();
}
template <class T>
const T* in_block_of_cluster(const T* own, int) {
  return own;
}
template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(emulated::dynamic_shared());
}
template <class T>
T shuffle_xor(T x, int mask) {
  T other;
  const size_t lane = emulated::place().lane ^ static_cast<unsigned>(mask);
  std::memcpy(&other, emulated::exchange(&x, sizeof x) + lane * emulated::kSlot, sizeof other);
  return other;
}

/// x of lane `from`.
template <class T>
T shuffle(T x, int from) {
  T other;
  std::memcpy(&other, emulated::exchange(&x, sizeof x) + static_cast<size_t>(from) * emulated::kSlot,
              sizeof other);
  return other;
}

inline void fence_device() {}
inline float load_shared_by_blocks(const float* from) { return *from; }
/// What a kernel before may still be writing: here, a wrong number.
template <class T>
T load_early(const T* from) {
  return *from + static_cast<T>(emulated::place().block.x % 2);
}
inline void prefetch(const void*) {}
/// 16 bytes that are read once.
template <class P>
P load_streamed(const void* from) {
  return *static_cast<const P*>(from);
}

template <class P>
void store_streamed(void* to, const P& all) {
  std::memcpy(to, &all, sizeof all);
}

inline int atomicAdd(int* at, int x) { return std::exchange(*at, *at + x); }

// From a table: the compiler's conversion is a long call where no instruction may be used for it, and
// products of halves are most of what the kernels convert.
inline float float_of_half(uint16_t bits) {
  static const auto of_all = [] {
    std::vector<float> floats(size_t{1} << 16);
    for (size_t i = 0; i < floats.size(); ++i) {
      const auto code = static_cast<uint16_t>(i);
      _Float16 h;
      std::memcpy(&h, &code, sizeof h);
      floats[i] = static_cast<float>(h);
    }
    return floats;
  }();
  return of_all[bits];
}
inline uint16_t half_of_float(float x) {
  const auto h = static_cast<_Float16>(x);
  uint16_t bits;
  std::memcpy(&bits, &h, sizeof bits);
  return bits;
}
inline uint16_t bfloat_of_float(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = x != x ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
  return static_cast<uint16_t>(bits >> 16);
}
/// Two of them as the halves of a register, the first one below.
inline uint32_t halves_of_floats(float low, float high) {
  return uint32_t{half_of_float(low)} | uint32_t{half_of_float(high)} << 16;
}
inline uint32_t bfloats_of_floats(float low, float high) {
  return uint32_t{bfloat_of_float(low)} | uint32_t{bfloat_of_float(high)} << 16;
}

template <class P>
void keep_in_registers(P&) {}

inline float fast_inverse_root(float x) { return 1 / sqrtf(x); }
inline float fast_exp(float x) { return exp2f(x * 1.4426950408889634f); }
struct alignas(16) float4 {
  float x, y, z, w;
};

// 16 bytes from global to shared memory; they are there after wait_for_copies and a sync. Zeros if not
// `read`.
inline void copy_async(void* shared, const void* global, bool read) {
  read ? std::memcpy(shared, global, 16) : std::memset(shared, 0, 16);
}
inline void end_of_copies() {}
template <int n>
void wait_for_copies() {}

inline void wait_for_kernels_before() { emulated::wait_for_kernels_before(); }
inline void let_next_kernel_start() {}

/// Four 8 x 8 matrices of 16-bit elements from shared memory: lane i points to row i % 8 of matrix i / 8, and
/// gets elements 2 * (lane % 4) and the one after it of row lane / 4 of each.
inline void load_matrices(uint32_t (&to)[4], const void* row) {
  const std::byte* rows = emulated::exchange(&row, sizeof row);
  const unsigned lane = emulated::place().lane;
  for (unsigned m = 0; m < 4; ++m) {
    const std::byte* from;
    std::memcpy(&from, rows + (8 * m + lane / 4) * emulated::kSlot, sizeof from);
    std::memcpy(&to[m], from + 4 * (lane % 4), 4);
  }
}
/// The same of the transposed matrices: elements 2 * (lane % 4) and the one after it of column lane / 4.
inline void load_matrices_transposed(uint32_t (&to)[4], const void* row) {
  const std::byte* rows = emulated::exchange(&row, sizeof row);
  const unsigned lane = emulated::place().lane;
  for (unsigned m = 0; m < 4; ++m) {
    uint16_t pair[2];
    for (unsigned i = 0; i < 2; ++i) {
      const std::byte* from;
      std::memcpy(&from, rows + (8 * m + 2 * (lane % 4) + i) * emulated::kSlot, sizeof from);
      std::memcpy(&pair[i], from + 2 * (lane / 4), 2);
    }
    std::memcpy(&to[m], pair, 4);
  }
}

struct f16;
struct bf16;
template <class T>
float widened_bits(uint16_t bits) {
  T x{bits};
  return widened(x);
}

/// c += a b of a warp: a is 16 x 16, b 16 x 8. Lane: g = lane / 4, t = lane % 4.
///   a[0..3]: rows g, g + 8, g, g + 8; columns 2t.. of the first, first, last, last 8
///   b[0..1]: rows 2t.. of the first and of the last 8, column g
///   c[0..3]: row g, columns 2t and 2t + 1; row g + 8, the same
template <class T>
void multiply_add(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  struct Given {
    uint32_t a[4], b[2];
  } mine{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  const std::byte* all = emulated::exchange(&mine, sizeof mine);
  const auto given = [&](unsigned lane) {
    Given g;
    std::memcpy(&g, all + lane * emulated::kSlot, sizeof g);
    return g;
  };
  const auto half = [](uint32_t pair, unsigned i) {
    return widened_bits<T>(static_cast<uint16_t>(pair >> 16 * i));
  };
  const unsigned lane = emulated::place().lane, g = lane / 4, t = lane % 4;
  for (unsigned k = 0; k < 16; ++k) {
    const unsigned from = k % 8 / 2, odd = k % 2, last = k / 8;
    const Given rows = given(4 * g + from);
    for (unsigned j = 0; j < 2; ++j) {
      const float with = half(given(4 * (2 * t + j) + from).b[last], odd);
      c[j] += half(rows.a[2 * last], odd) * with;
      c[2 + j] += half(rows.a[2 * last + 1], odd) * with;
    }
  }
}

/// What a kernel takes, as the compiler writes it. It says which kernel it is: as a function it has no name
/// here.
template <class... P>
std::string_view parameters() {
  const std::string_view all = __PRETTY_FUNCTION__;
  return all.substr(all.find('['));
}

/// Enqueues a kernel on a queue that is settled.
template <class... P, class... A>
Outcome start_on(Queue& queue, Grid blocks, BlockSize block, size_t shared, void (*kernel)(P...),
                 A... arguments) {
  if (auto done = launch_chain(queue); !done.good()) return done;
  auto launched = std::make_shared<emulated::Kernel>(
      emulated::Size{blocks.x, blocks.y, blocks.z}, emulated::Size{block.threads}, shared,
      [kernel, all = std::tuple<P...>(arguments...)] { std::apply(kernel, all); });
  launched->together = block.together;
  const auto enqueued = gpu::enqueue_kernel(
      queue.stream, parameters<P...>(), [launched] { return emulated::run(*launched); },
      [launched] { emulated::begin(*launched); });
  return outcome(enqueued, "launching");
}
template <class... P, class... A>
Outcome start(const backend::Launch& l, Grid blocks, BlockSize block, size_t shared, void (*kernel)(P...),
              A... arguments) {
  Queue& queue = queue_of(l);
  if (auto settled = settle(queue); !settled.good()) return settled;
  return start_on(queue, blocks, block, shared, kernel, arguments...);
}

}  // namespace weft::cuda

#include "../cuda/any.hpp"
