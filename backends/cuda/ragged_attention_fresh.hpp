#pragma once
#include "ragged.hpp"
#include "rotation.hpp"
#include "rows.hpp"

// What attention of a single token does first: its queries and keys are normalized and rotated, its keys and
// values written into the caches.
namespace weft::cuda::queries {

constexpr int kPiece = 8;  // elements of a lane

/// kPiece elements of a row from `column` on, zeros behind its end.
template <class T>
struct RowPiece {
  Piece<T, kPiece> of;

  RowPiece() = default;
  __device__ RowPiece(const T* row, int column, int end, bool aligned) {
    if (aligned && column < end) {
      of = *reinterpret_cast<const Piece<T, kPiece>*>(row + column);
      return;
    }
    for (int i = 0; i < kPiece; ++i) of.of[i] = column + i < end ? row[column + i] : narrowed<T>(0);
  }
  __device__ float operator[](int i) const { return widened(of.of[i]); }
  /// To memory that is aligned to it.
  __device__ void write(T* to) const { *reinterpret_cast<Piece<T, kPiece>*>(to) = of; }
};

/// Without x, there is nothing to do.
template <class T>
struct Fresh {
  typename Rotation<T>::Piece q, k, v;
};

/// A lane's piece of a row, and what turns it: of q for the first `kHeads` rows, then of k and of v.
template <class T, int kHeads>
class TurningRow {
  using Piece = typename Rotation<T>::Piece;

 public:
  /// Begins to load. `from`: the rows of q where they are not fresh; `head` and `kv`: the first head here,
  /// and that of the keys.
  __device__ TurningRow(const Fresh<T>& fresh, const T* from, int row, int head, int heads, int kv,
                        int column, int dim, bool aligned)
      : row_(row), head_(row >= kHeads ? kv : head + (row < heads ? row : 0)), column_(column) {
    const T* const x = of(fresh, &Piece::x);
    const T* const rows = x ? x : from;
    const bool there = row < kHeads + 2;
    own_ = RowPiece<T>(rows + int64_t{head_} * dim, column, there ? dim : 0, aligned);
    const T *const cosine = of(fresh, &Piece::cosine), *const sine = of(fresh, &Piece::sine);
    turned_ = there && x && column < dim;
    rotated_ = turned_ && cosine;
    const int half = dim / 2;
    interleaved_ = of(fresh, &Piece::interleaved);
    is_first_ = column < half;
    if (!rotated_) return;
    const int64_t table =
        int64_t{row < kHeads ? fresh.q.tables.row_of(head_) : fresh.k.tables.row_of(head_)} * half;
    if (interleaved_) {
      for (int e = 0; e < kPiece; ++e)
        cosine_.of.of[e] = cosine[table + column / 2 + e / 2],
        sine_.of.of[e] = sine[table + column / 2 + e / 2];
    } else {
      pair_column_ = is_first_ ? column + half : column - half;
      pair_ = RowPiece<T>(rows + int64_t{head_} * dim, pair_column_, dim, true);
      const int at = is_first_ ? column : column - half;
      cosine_ = RowPiece<T>(cosine + table, at, half, true),
      sine_ = RowPiece<T>(sine + table, at, half, true);
    }
  }

  /// The row after it all. kLanes lanes have it. `writes`: what others may read is written.
  template <int kLanes>
  __device__ RowPiece<T> finish(const Fresh<T>& fresh, bool writes) {
    T* const normed = of(fresh, &Piece::normed);
    float squares = 0;
    for (int e = 0; e < kPiece; ++e) squares += own_[e] * own_[e];
    squares = sum_of<kLanes>(squares);
    if (!turned_) return own_;
    const Piece& p = row_ < kHeads ? fresh.q : fresh.k;
    if (normed) {
      const float scale = p.scale_of(squares);
      for (int e = 0; e < kPiece; ++e) {
        own_.of.of[e] = p.normalized(own_.of.of[e], column_ + e, scale);
        pair_.of.of[e] = p.normalized(pair_.of.of[e], pair_column_ + e, scale);
      }
      if (writes) own_.write(normed + p.place(head_, column_));
    }
    if (rotated_) rotate();
    T* const y = of(fresh, &Piece::y);
    if (writes && y) own_.write(y + p.place(head_, column_));
    return own_;
  }

 private:
  template <class M>
  __device__ M of(const Fresh<T>& fresh, M Piece::* member) const {
    return row_ < kHeads ? fresh.q.*member : row_ == kHeads ? fresh.k.*member : fresh.v.*member;
  }
  __device__ void rotate() {
    const RowPiece<T> before = own_;
#pragma unroll
    for (int e = 0; e < kPiece; ++e) {
      const bool is_first = interleaved_ ? e % 2 == 0 : is_first_;
      const float a = before[e], b = interleaved_ ? before[e ^ 1] : pair_[e];
      own_.of.of[e] = narrowed<T>(is_first ? a * cosine_[e] - b * sine_[e] : b * sine_[e] + a * cosine_[e]);
    }
  }

  int row_, head_, column_, pair_column_ = 0;
  bool turned_, rotated_, interleaved_, is_first_;
  RowPiece<T> own_, pair_{}, cosine_{}, sine_{};
};

}  // namespace weft::cuda::queries
