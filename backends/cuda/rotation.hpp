#pragma once
#include <array>

#include "collect.hpp"
#include "ragged.hpp"

// What becomes of new queries, keys and values before attention: they are normalized, rotated, and written
// into caches. All of a layer are one launch, or, for a single token, a part of attention's.
namespace weft::cuda {

/// The rows of x, and which row of the tables each has: tables are broadcast along axes of stride 0.
struct TableRows {
  static constexpr int kMostAxes = 5;
  int axes;
  int sizes[kMostAxes], strides[kMostAxes];

  __device__ int row_of(int row) const {
    int at = 0;
    for (int d = axes - 1; d >= 0; --d) {
      at += row % sizes[d] * strides[d];
      row /= sizes[d];
    }
    return at;
  }
};

template <class T>
struct Rotation {
  struct Piece {
    const T* x;
    T* normed;               ///< or null: x is not normalized
    const T* weight;         ///< of the norm, or null
    const T *cosine, *sine;  ///< without tables, rows stay as they are
    T* y;                    ///< or null
    T* cache;                ///< or null: [batch, heads, capacity, 2 half]
    int64_t n;               ///< pairs of elements
    int half, heads;         ///< pairs of a row, rows of a token
    float epsilon;
    bool interleaved;
    TableRows tables;
    Ragged ragged;

    /// Elements with the columns of a row.
    __device__ int64_t place(int row, int column) const { return int64_t{row} * 2 * half + column; }
    /// What normalizes a row, whose squares have this sum.
    __device__ float scale_of(float squares) const {
      return 1 / sqrtf(squares / static_cast<float>(2 * half) + epsilon);
    }
    __device__ T normalized(T element, int column, float scale) const {
      return narrowed<T>(widened(element) * scale * (weight ? widened(weight[column]) : 1));
    }
  };
  static constexpr int kMost = 6, kElements = 256;  // one for each thread: a token has few
  struct Common {
    bool operator==(const Common&) const = default;
  };

  static __device__ void run(const Piece& p, const Common&, int64_t begin, int64_t end) {
    for (int64_t i = begin + threadIdx.x; i < end; i += 256) {
      const int row = static_cast<int>(i / p.half);
      turn(p, row, static_cast<int>(i - int64_t{row} * p.half));
    }
  }

 private:
  static __device__ void turn(const Piece& p, int row, int pair) {
    const int column = p.interleaved ? 2 * pair : pair, apart = p.interleaved ? 1 : p.half;
    const int64_t at = p.place(row, column);
    T first = p.x[at], second = p.x[at + apart];
    if (p.normed) {
      float squares = 0;
      for (int c = 0; c < 2 * p.half; ++c) {
        const float x = widened(p.x[p.place(row, c)]);
        squares += x * x;
      }
      const float scale = p.scale_of(squares);
      first = p.normalized(first, column, scale), second = p.normalized(second, column + apart, scale);
      p.normed[at] = first, p.normed[at + apart] = second;
    }
    if (p.cosine) {
      const int64_t table = int64_t{p.tables.row_of(row)} * p.half + pair;
      const float a = widened(first), b = widened(second), cosine = widened(p.cosine[table]),
                  sine = widened(p.sine[table]);
      first = narrowed<T>(a * cosine - b * sine), second = narrowed<T>(a * sine + b * cosine);
    }
    if (p.y) p.y[at] = first, p.y[at + apart] = second;
    if (!p.cache) return;
    const auto [sequence, position] = p.ragged.place_of(row / p.heads);
    if (sequence < 0 || position < 0 || position >= p.ragged.capacity) return;
    T* const to =
        p.cache + ((int64_t{sequence} * p.heads + row % p.heads) * p.ragged.capacity + position) * 2 * p.half;
    to[column] = first, to[column + apart] = second;
  }
};

/// Whether rows of one token wait in their queue to be normalized together with what follows: those of heads.
inline bool normalizes_heads(backend::TensorView x) {
  return x.rank() == 3 && x.dim(0) == 1 && x.dim(2) % 16 == 0 && x.dim(2) <= 256;
}

}  // namespace weft::cuda
