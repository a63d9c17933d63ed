#pragma once
#include <vector>

#include "weft/shared/numbers.hpp"
#include "weft/shared/walk.hpp"

// matmul: tiles of 4 x 4 in double. Both operands are first copied into panels of doubles, so transposition
// and dtype matter only to the copy. Each element is one sum over k in order: its bits depend on nothing
// else.
namespace weft::shared {

namespace detail {

inline constexpr int64_t kTile = 4;
inline constexpr int64_t kRowTiles = 16;  // rows of tiles that share one panel of b

/// An operand seen as lines of length k: the rows of a, the columns of b.
struct Lines {
  const char* data;
  DType dtype;
  int64_t n, k;            // how many lines, how long
  int64_t step, k_stride;  // from line to line, from element to element

  Lines(TensorView t, bool along_last) : data(t.data()), dtype(t.dtype()) {
    const int64_t rows = t.dim(t.rank() - 2), columns = t.dim(t.rank() - 1);
    n = along_last ? rows : columns;
    k = along_last ? columns : rows;
    step = along_last ? columns : 1;
    k_stride = along_last ? 1 : columns;
  }
  /// panel[i * 4 + j] = element i of line first + j of the matrix that begins at `base`; zero beyond the last
  /// line.
  void pack(int64_t base, int64_t first, double* panel) const {
    const int64_t lines = std::min(kTile, n - first);
    visit<Kinds::floats>(dtype, [&]<class T>(Tag<T>) {
      const T* from = reinterpret_cast<const T*>(data) + base + first * step;
      if (lines < kTile) std::fill_n(panel, k * kTile, 0.0);
      if (lines == kTile && step == 1) {
        for (int64_t i = 0; i < k; ++i)
          for (int64_t j = 0; j < kTile; ++j) panel[i * kTile + j] = load(from[i * k_stride + j]);
      } else {
        for (int64_t j = 0; j < lines; ++j)
          for (int64_t i = 0; i < k; ++i) panel[i * kTile + j] = load(from[j * step + i * k_stride]);
      }
    });
  }
};

/// sum[i][j] = sum over k of a[k][i] * b[k][j]. Written out so that the sums stay in registers.
inline void multiply_tile(const double* a, const double* b, int64_t k, double (&sum)[kTile][kTile]) {
  struct Row {
    double v[kTile];
  };
  Row s0{}, s1{}, s2{}, s3{};
  for (int64_t i = 0; i < k; ++i, a += kTile, b += kTile) {
    for (int j = 0; j < kTile; ++j) s0.v[j] += a[0] * b[j];
    for (int j = 0; j < kTile; ++j) s1.v[j] += a[1] * b[j];
    for (int j = 0; j < kTile; ++j) s2.v[j] += a[2] * b[j];
    for (int j = 0; j < kTile; ++j) s3.v[j] += a[3] * b[j];
  }
  const Row* rows[kTile] = {&s0, &s1, &s2, &s3};
  for (int r = 0; r < kTile; ++r) std::copy_n(rows[r]->v, kTile, sum[r]);
}

class MatMul {
 public:
  explicit MatMul(const Launch& l)
      : a_(l.input(0), l.call().attr("transpose_a").integer() == 0),
        b_(l.input(1), l.call().attr("transpose_b").integer() != 0),
        y_(l.output(0)),
        accumulates_(l.call().accumulates(0)),
        batches_(leading(l.output(0)), {leading(l.input(0)), leading(l.input(1))}),
        row_tiles_((a_.n + kTile - 1) / kTile) {}

  void run(const Launch& l) const {
    const int64_t macs = kTile * std::max<int64_t>(1, a_.k * b_.n);
    const int64_t grain = std::max<int64_t>(std::min<int64_t>(4, row_tiles_), (1 << 17) / macs);
    l.host().parallel_for(batches_.total() * row_tiles_, grain, [&](int64_t begin, int64_t end) {
      std::vector<double> a(kRowTiles * kTile * a_.k), b(kTile * a_.k);
      while (begin < end) {
        const int64_t batch = begin / row_tiles_, first = begin % row_tiles_;
        const int64_t n = std::min({kRowTiles, end - begin, row_tiles_ - first});
        rows(batch, first, n, a.data(), b.data());
        begin += n;
      }
    });
  }

 private:
  static std::span<const int64_t> leading(TensorView t) { return t.dims().first(t.rank() - 2); }

  void rows(int64_t batch, int64_t first, int64_t n, double* a, double* b) const {
    int64_t a_base = 0, b_base = 0;
    batches_.run(batch, batch + 1, [&](int64_t, const auto& at, int64_t) {
      a_base = at[0] * a_.n * a_.k;
      b_base = at[1] * b_.n * b_.k;
    });
    for (int64_t i = 0; i < n; ++i) a_.pack(a_base, (first + i) * kTile, a + i * kTile * a_.k);
    double sum[kTile][kTile];
    for (int64_t column = 0; column < b_.n; column += kTile) {
      b_.pack(b_base, column, b);
      for (int64_t i = 0; i < n; ++i) {
        multiply_tile(a + i * kTile * a_.k, b, a_.k, sum);
        put(batch, (first + i) * kTile, column, sum);
      }
    }
  }

  void put(int64_t batch, int64_t row, int64_t column, const double (&sum)[kTile][kTile]) const {
    visit<Kinds::floats>(y_.dtype(), [&]<class T>(Tag<T>) {
      T* to = y_.data<T>() + (batch * a_.n + row) * b_.n + column;
      for (int64_t r = 0; r < std::min(kTile, a_.n - row); ++r, to += b_.n)
        for (int64_t c = 0; c < std::min(kTile, b_.n - column); ++c)
          to[c] = store<T>(accumulates_ ? load(to[c]) + load(store<T>(sum[r][c])) : sum[r][c]);
    });
  }

  Lines a_, b_;
  TensorView y_;
  bool accumulates_;
  Walk<2> batches_;
  int64_t row_tiles_;
};

inline Support accepts_matmul(const OpCall& c) {
  if (auto s = arity(c, 2, 1); !s) return s;
  const TypeView a = c.input(0), b = c.input(1), y = c.output(0);
  if (!includes(Kinds::floats, a.dtype()))
    return Support::no("dtype must be {}, got {}", name(Kinds::floats), a.dtype());
  if (auto s = same_dtype(a, b); !s) return s;
  if (auto s = same_dtype(a, y); !s) return s;
  if (a.rank() < 2 || b.rank() < 2 || y.rank() < 2)
    return Support::no("operands must have rank >= 2, got {} and {}", a.rank(), b.rank());
  const bool ta = c.attr("transpose_a").integer() != 0, tb = c.attr("transpose_b").integer() != 0;
  const int64_t ka = a.max()[a.rank() - (ta ? 2 : 1)], kb = b.max()[b.rank() - (tb ? 1 : 2)];
  if (ka != kb) return Support::no("inner sizes differ: {} and {}", ka, kb);
  for (const TypeView& x : {a, b})
    for (int64_t i = 0, skip = y.rank() - x.rank(); i < x.rank() - 2; ++i)
      if (skip < 0 || (x.max()[i] != 1 && x.max()[i] != y.max()[i + skip]))
        return Support::no("leading axes of {} do not broadcast to {}", x.max(), y.max());
  return Support::yes();
}
}  // namespace detail

/// y[..., m, n] = sum of a[..., m, k] b[..., k, n], in double; leading axes broadcast.
inline std::array<KernelRecord, 1> matmul_records() {
  return {KernelRecord{.op = "matmul",
                       .variant = "shared",
                       .reads = {"transpose_a", "transpose_b"},
                       .accepts = detail::accepts_matmul,
                       .launch =
                           [](const Launch& l) {
                             detail::MatMul(l).run(l);
                             return Outcome::ok();
                           },
                       .accumulates = true}};
}

}  // namespace weft::shared
