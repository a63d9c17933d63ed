#pragma once
#include <array>

#include "collect.hpp"
#include "ragged.hpp"

// What becomes of new queries, keys and values before attention: they are rotated, written into caches, or
// both. All of a layer are one launch.
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
    const T *x, *cosine, *sine;  ///< without tables, rows stay as they are
    T* y;                        ///< or null
    T* cache;                    ///< or null: [batch, heads, capacity, 2 half]
    int64_t n;                   ///< pairs of elements
    int half, heads;             ///< pairs of a row, rows of a token
    bool interleaved;
    TableRows tables;
    Ragged ragged;
  };
  static constexpr int kMost = 6, kElements = 256;  // one for each thread: a token has few
  struct Common {
    bool operator==(const Common&) const = default;
  };

  static __device__ void run(const Piece& p, const Common&, int64_t begin, int64_t end) {
    const int apart = p.interleaved ? 1 : p.half;
    for (int64_t i = begin + threadIdx.x; i < end; i += 256) {
      const int row = static_cast<int>(i / p.half), pair = static_cast<int>(i - int64_t{row} * p.half),
                column = p.interleaved ? 2 * pair : pair;
      const int64_t at = int64_t{row} * 2 * p.half + column;
      T first = p.x[at], second = p.x[at + apart];
      if (p.cosine) {
        const int64_t table = int64_t{p.tables.row_of(row)} * p.half + pair;
        const float a = widened(first), b = widened(second), cosine = widened(p.cosine[table]),
                    sine = widened(p.sine[table]);
        first = narrowed<T>(a * cosine - b * sine), second = narrowed<T>(a * sine + b * cosine);
      }
      if (p.y) p.y[at] = first, p.y[at + apart] = second;
      if (!p.cache) continue;
      const auto [sequence, position] = p.ragged.place_of(row / p.heads);
      if (sequence < 0 || position < 0 || position >= p.ragged.capacity) continue;
      T* const to = p.cache + ((int64_t{sequence} * p.heads + row % p.heads) * p.ragged.capacity + position) *
                                  2 * p.half;
      to[column] = first, to[column + apart] = second;
    }
  }
  static Outcome finish(Queue&, const Pieces<Rotation>&) { return Outcome::ok(); }
};

}  // namespace weft::cuda
