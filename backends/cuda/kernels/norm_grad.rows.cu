#include "../shares.hpp"

// The gradients of layer_norm and rms_norm, from one reading of x and dy. Each block takes every n-th row,
// adds up its share of the gradients of weight and bias in registers, and a second kernel sums the shares.
// How many there are depends on the sizes alone, so that bits do not depend on the device.
namespace weft::cuda {

using namespace backend;

namespace {

constexpr int kMultiprocessors = 132;              // of an H100
constexpr int kMostShares = 2 * kMultiprocessors;  // two blocks of 256 threads at a time on each
constexpr int64_t kMostColumns = 8192;

struct NormGradSizes {
  int64_t rows;
  int columns;
  float epsilon;
  bool adds;  // to dx, as it is
};

template <class T>
struct NormGradPointers {
  const T *x, *dy, *weight;
  T *dx, *dweight, *dbias;
  float* shares;  // [share][weight, bias][column]
};

/// A thread's sums over rows, of the columns that it keeps.
template <class L>
struct ColumnSums {
  float weight[L::kSlots]{}, bias[L::kSlots]{};
};

/// What is read of a row.
template <class L>
struct NormGradRow {
  Row<L> x, dy, before;  // `before`: dx, where it is added to
};

/// While a row is computed, the next one is on its way to shared memory: each thread copies and reads its own
/// pieces. Pieces that are shorter than 16 bytes are read when they are wanted.
template <class L>
class RowsAhead {
 public:
  using T = typename L::T;
  using P = Piece<T, L::kWide>;
  static constexpr bool kCopies = sizeof(P) == 16;
  static constexpr size_t kPieces = kCopies ? L::kKept * L::kThreads : 0;  // of each tensor
  static constexpr size_t kBytes = 3 * kPieces * 16;

  __device__ RowsAhead(const NormGradPointers<T>& p, const NormGradSizes& s)
      : p_(p), s_(s), pieces_(dynamic_shared<P>()) {}

  __device__ void copy(int64_t r) const {
    if constexpr (kCopies) {
      copy_row(0, p_.x, r), copy_row(1, p_.dy, r);
      if (s_.adds) copy_row(2, p_.dx, r);
      end_of_copies();
    }
  }
  __device__ NormGradRow<L> row(int64_t r) const {
    const int64_t at = r * s_.columns;
    const int n = s_.columns;
    if constexpr (kCopies) {
      wait_for_copies<0>();
      return {{p_.x + at, n, pieces_},
              {p_.dy + at, n, pieces_ + kPieces},
              {p_.dx + at, n, pieces_ + 2 * kPieces}};
    } else {
      return {{p_.x + at, n}, {p_.dy + at, n}, {p_.dx + at, s_.adds ? n : 0}};
    }
  }

 private:
  __device__ void copy_row(size_t tensor, const T* from, int64_t r) const {
#pragma unroll
    for (int k = 0; k < L::kKept; ++k)
      if (const int c = piece_column<L>(k); c < s_.columns && r < s_.rows)
        copy_async(pieces_ + tensor * kPieces + static_cast<size_t>(k) * L::kThreads + threadIdx.x,
                   from + r * s_.columns + c, true);
  }

  const NormGradPointers<T>& p_;
  const NormGradSizes& s_;
  P* pieces_;
};

// Writes dx of a row, and adds its share of dweight and dbias.
template <class L, bool kCentered>
__device__ void grad_of_row(const NormGradPointers<typename L::T>& p, const NormGradSizes& s, int64_t r,
                            const NormGradRow<L>& row, ColumnSums<L>& sums) {
  const Row<L>&x = row.x, &dy = row.dy;
  const SharedRow<L> weight{p.weight, 1};
  const auto count = static_cast<float>(s.columns);
  float mean = 0, squares = 0, sum = 0, product = 0;
  if (kCentered) {
    each<L>(s.columns, [&](At, float v) { mean += v; }, x);
    mean = over_row<L>(mean, Sum()) / count;
  }
  each<L>(s.columns, [&](At, float v) { squares += (v - mean) * (v - mean); }, x);
  const float scale = 1 / sqrtf(over_row<L>(squares, Sum()) / count + s.epsilon);
  // With h the normalized x and g = dy weight: dx = scale (g - mean(g) - h mean(g h)).
  each<L>(
      s.columns,
      [&](At c, float v, float d, float w) {
        const float h = (v - mean) * scale;
        sum += d * w, product += d * w * h;
        sums.weight[c.slot] += d * h;
        if (kCentered) sums.bias[c.slot] += d;
      },
      x, dy, weight);
  const float of_g = kCentered ? over_row<L>(sum, Sum()) / count : 0,
              of_gh = over_row<L>(product, Sum()) / count;
  store<L>(
      p.dx + r * s.columns, s.columns,
      [&](At, float v, float d, float w, float before) {
        const float own = scale * (d * w - of_g - (v - mean) * scale * of_gh);
        return s.adds ? before + own : own;
      },
      x, dy, weight, row.before);
}

/// Stores a thread's sums of its columns, or adds them to what is there: those of the weight, then those of
/// the bias.
template <class L, bool kCentered>
__device__ void store_sums(float* to, int columns, const ColumnSums<L>& sums, bool add) {
  each_piece<L>(columns, [&](int k, int column) {
#pragma unroll
    for (int i = 0; i < L::kWide; ++i) {
      const int slot = k * L::kWide + i;
      float &weight = to[column + i], &bias = to[columns + column + i];
      weight = add ? weight + sums.weight[slot] : sums.weight[slot];
      if (kCentered) bias = add ? bias + sums.bias[slot] : sums.bias[slot];
    }
  });
}

template <class L, bool kCentered>
__global__ void __launch_bounds__(L::kThreads, kMostShares / kMultiprocessors * 256 / L::kThreads)
    norm_grad_of_rows(NormGradPointers<typename L::T> p, NormGradSizes s) {
  wait_for_kernels_before();
  let_next_kernel_start();
  ColumnSums<L> sums;
  const RowsAhead<L> ahead(p, s);
  const int64_t step = int64_t{gridDim.x} * L::kRows;
  int64_t r = row_of_thread<L>();
  ahead.copy(r);
  for (; r < s.rows; r += step) {
    const NormGradRow<L> row = ahead.row(r);
    ahead.copy(r + step);
    grad_of_row<L, kCentered>(p, s, r, row, sums);
  }
  float* const share = p.shares + int64_t{blockIdx.x} * 2 * s.columns;
  if constexpr (L::kRows == 1) return store_sums<L, kCentered>(share, s.columns, sums, false);
  // Threads that took other rows of the same columns add theirs, one after another.
  sync_block();
  auto* const shared = dynamic_shared<float>();
  for (int turn = 0; turn < L::kRows; ++turn) {
    if (turn > 0) sync_block();
    if (static_cast<int>(threadIdx.x) / L::kOfRow == turn)
      store_sums<L, kCentered>(shared, s.columns, sums, turn > 0);
  }
  sync_block();
  for (int i = static_cast<int>(threadIdx.x); i < (kCentered ? 2 : 1) * s.columns; i += L::kThreads)
    share[i] = shared[i];
}

int64_t shares_of(int64_t rows) { return std::clamp<int64_t>((rows + 31) / 32, 1, kMostShares); }

/// f(Layout*) with a layout that keeps rows of at most kMostColumns in registers.
template <class T, class F>
Outcome with_kept_rows(int columns, bool aligned, F f) {
  constexpr int kWide = 16 / sizeof(T);
  if (!aligned) {
    if (columns <= 32 * 4) return f(static_cast<Layout<T, 32, 4, 1>*>(nullptr));
    if (columns <= 256 * 8) return f(static_cast<Layout<T, 256, 8, 1>*>(nullptr));
    return f(static_cast<Layout<T, 1024, 8, 1>*>(nullptr));
  }
  if (columns <= 32 * 3 * kWide) return f(static_cast<Layout<T, 32, 3, kWide>*>(nullptr));
  if (columns <= 32 * 4 * kWide) return f(static_cast<Layout<T, 32, 4, kWide>*>(nullptr));
  if (columns <= 256 * 2 * kWide) return f(static_cast<Layout<T, 256, 2, kWide>*>(nullptr));
  return f(static_cast<Layout<T, 1024, 8 / kWide, kWide>*>(nullptr));
}

template <bool kCentered>
int64_t trailing_of(const OpCall& c) {
  return kCentered ? c.attr("trailing").integer(1) : 1;
}

template <bool kCentered>
Support accepts(const OpCall& c) {
  const auto x = c.input(0);
  const int64_t trailing = trailing_of<kCentered>(c);
  if (auto rows = takes_rows(x, trailing); !rows) return rows;
  int64_t columns = 1;
  for (int64_t d = x.rank() - trailing; d < x.rank(); ++d) columns *= x.shape()[d].max();
  if (columns > kMostColumns) return Support::no("rows of at most {}, got {}", kMostColumns, columns);
  if (c.accumulate() >> 1 != 0) return Support::no("adds to dx only");
  return Support::yes();
}

template <bool kCentered>
Outcome prepare(const OpCall& c, weft_plan& plan) {
  const auto x = c.input(0).max();
  int64_t rows = 1, columns = 1;
  const auto leading = x.size() - static_cast<size_t>(trailing_of<kCentered>(c));
  for (size_t d = 0; d < x.size(); ++d) (d < leading ? rows : columns) *= x[d];
  plan.workspace = static_cast<uint64_t>(shares_of(rows) * 2 * columns) * sizeof(float);
  return Outcome::ok();
}

template <bool kCentered>
Outcome launch(const Launch& l) {
  const TensorView x = l.input(0), dy = l.input(1), weight = l.input(2), dx = l.output(0);
  int64_t columns = 1, rows = 1;
  const int64_t leading = x.rank() - trailing_of<kCentered>(l.call());
  for (int64_t d = 0; d < x.rank(); ++d) (d < leading ? rows : columns) *= x.dim(d);
  if (columns == 0) return Outcome::ok();
  const NormGradSizes s{rows, static_cast<int>(columns),
                        static_cast<float>(l.call().attr("epsilon").real(1e-5)), l.call().accumulates(0)};
  const auto shares = static_cast<unsigned>(shares_of(rows));
  return with_type(x.dtype(), [&]<class T>(T*) {
    const NormGradPointers<T> p{x.data<const T>(),
                                dy.data<const T>(),
                                weight.has() ? weight.data<const T>() : nullptr,
                                dx.data<T>(),
                                l.output(1).data<T>(),
                                kCentered ? l.output(2).data<T>() : nullptr,
                                l.workspace().data<float>()};
    const bool aligned = aligned_rows(columns, {x, dy, weight, dx});
    auto told = with_kept_rows<T>(s.columns, aligned, [&]<class L>(L*) {
      const size_t of_sums = L::kRows == 1 ? 0 : 2 * sizeof(float) * static_cast<size_t>(columns);
      return start(l, {shares}, L::kThreads, std::max(of_sums, RowsAhead<L>::kBytes),
                   norm_grad_of_rows<L, kCentered>, p, s);
    });
    if (!told.good()) return told;
    const int n = static_cast<int>(shares);
    auto of_weight = start_sum_of_shares(l, p.shares, p.dweight, n, s.columns, 2 * columns);
    if (!of_weight.good() || !kCentered) return of_weight;
    return start_sum_of_shares(l, p.shares + columns, p.dbias, n, s.columns, 2 * columns);
  });
}

}  // namespace

std::span<const KernelRecord> norm_grad_rows() {
  static const KernelRecord all[] = {{.op = "layer_norm_grad",
                                      .variant = "rows",
                                      .reads = {"epsilon", "trailing"},
                                      .accepts = accepts<true>,
                                      .prepare = prepare<true>,
                                      .launch = launch<true>,
                                      .accumulates = true},
                                     {.op = "rms_norm_grad",
                                      .variant = "rows",
                                      .reads = {"epsilon"},
                                      .accepts = accepts<false>,
                                      .prepare = prepare<false>,
                                      .launch = launch<false>,
                                      .accumulates = true}};
  return all;
}

}  // namespace weft::cuda
