#pragma once
#include "kernel.hpp"

// Sequences of different lengths in one axis of tokens: `length` [batch] and `offsets` [batch + 1], of i32 or
// i64, as ragged_attention and ragged_cache_append define them.
namespace weft::cuda {

/// A list of whole numbers.
struct Numbers {
  const void* data;
  bool wide;  ///< i64

  __device__ int64_t operator[](int i) const {
    return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
  /// While a kernel may be writing it.
  __device__ int64_t likely(int i) const {
    return wide ? load_early(static_cast<const int64_t*>(data) + i)
                : load_early(static_cast<const int32_t*>(data) + i);
  }
  bool operator==(const Numbers&) const = default;
};
inline Numbers numbers_of(backend::TensorView t) { return {t.data(), t.dtype() == DType::i64}; }

struct Ragged {
  Numbers length, offsets;
  int batch, tokens, capacity;

  struct Place {
    int sequence;  ///< -1: of none
    int position;  ///< in the sequence; may lie outside of the cache
  };
  __device__ Place place_of(int token) const {
    if (batch == 1)  // without loads that wait for each other
      return place(token, offset(0), offset(1), clamped(length[0], capacity));
    int begun = 0;
    for (int i = 0; i <= batch; ++i) begun += offset(i) <= token;
    if (begun == 0 || begun > batch) return {-1, 0};
    return {begun - 1, clamped(length[begun - 1], capacity) + token - offset(begun - 1)};
  }
  /// A guess, while kernels may be writing the lists: of none for more than one sequence.
  __device__ Place likely_place_of(int token) const {
    if (batch != 1) return {-1, 0};
    return place(token, clamped(offsets.likely(0), tokens), clamped(offsets.likely(1), tokens),
                 clamped(length.likely(0), capacity));
  }
  bool operator==(const Ragged&) const = default;

 private:
  /// A token is the sequence's if exactly one of its two offsets is at most the token's number, also where
  /// the offsets are out of order.
  __device__ static Place place(int token, int begin, int end, int had) {
    return (begin <= token) != (end <= token) ? Place{0, had + token - begin} : Place{-1, 0};
  }
  __device__ static int clamped(int64_t x, int most) {
    return static_cast<int>(x < 0 ? 0 : x > most ? most : x);
  }
  __device__ int offset(int i) const { return clamped(offsets[i], tokens); }
};

/// `caches` [batch, heads, capacity, dim].
inline Ragged ragged_of(backend::TensorView length, backend::TensorView offsets, int64_t tokens,
                        backend::TensorView caches) {
  return {numbers_of(length), numbers_of(offsets), static_cast<int>(caches.dim(0)), static_cast<int>(tokens),
          static_cast<int>(caches.dim(2))};
}

/// Sizes below 2^31, and lists as the ops want them.
inline backend::Support takes_ragged(backend::TypeView caches, int64_t tokens, backend::TypeView length,
                                     backend::TypeView offsets) {
  using backend::Support;
  for (const auto list : {length, offsets})
    if (list.rank() != 1 || (list.dtype() != DType::i32 && list.dtype() != DType::i64))
      return Support::no("wants lists of whole numbers, got {} of {}", list.max(), list.dtype());
  const auto sizes = caches.max();
  if (sizes.size() != 4) return Support::no("wants caches [batch, heads, capacity, dim], got {}", sizes);
  if (length.max()[0] != sizes[0] || offsets.max()[0] != sizes[0] + 1)
    return Support::no("wants a length for each of {} sequences and an offset more, got {} and {}", sizes[0],
                       length.max(), offsets.max());
  if (tokens >= int64_t{1} << 31 || sizes[0] >= int64_t{1} << 31 || sizes[2] >= int64_t{1} << 30)
    return Support::no("too large: {} tokens, caches {}", tokens, sizes);
  return Support::yes();
}

}  // namespace weft::cuda
