#pragma once
#include <cstdint>
#include <cstdlib>
#include <new>

// Buffers of a thread that grow and are kept, for kernels to pack into. Each name has its own, so a kernel
// that calls another keeps its contents.
namespace weft::native {

enum class Scratch : uint8_t { packed_a, packed_b, rows, columns, scores, pieces, split, tail, count };

namespace detail {
struct Buffers {
  void* at[static_cast<int>(Scratch::count)] = {};
  uint64_t bytes[static_cast<int>(Scratch::count)] = {};
  ~Buffers() {
    for (void* p : at) std::free(p);
  }
};
inline thread_local Buffers buffers;
}  // namespace detail

/// At least `n` elements, aligned to a cache line, with undefined contents.
template <class T>
T* scratch(Scratch name, int64_t n) {
  const auto i = static_cast<int>(name);
  const uint64_t wanted = (static_cast<uint64_t>(n) * sizeof(T) + 4095) / 4096 * 4096;
  auto& b = detail::buffers;
  if (b.bytes[i] < wanted) {
    std::free(b.at[i]);
    b.bytes[i] = 0;
    b.at[i] = std::aligned_alloc(4096, wanted);
    if (!b.at[i]) throw std::bad_alloc();
    b.bytes[i] = wanted;
  }
  return static_cast<T*>(b.at[i]);
}

}  // namespace weft::native
