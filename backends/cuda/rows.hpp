#pragma once
#include <algorithm>

#include "kernel.hpp"

// Kernels on rows: how the threads of a block share rows, loads and stores of 16 bytes, and reductions.
namespace weft::cuda {

/// kOfRow threads take a row. Each reads pieces of kWide neighbouring elements and keeps kKept of them in
/// registers. kKept = 0: rows of any length, read again for every pass.
template <class T_, int kOfRow_, int kKept_, int kWide_>
struct Layout {
  using T = T_;
  static constexpr int kOfRow = kOfRow_, kKept = kKept_, kWide = kWide_;
  static constexpr int kThreads = kOfRow < 256 ? 256 : kOfRow, kRows = kThreads / kOfRow;
  static constexpr int kSlots = kKept * kWide;  // elements that a thread keeps
  /// Rows that each_row reads ahead: about 32 KB of them.
  static constexpr int kRowBytes = kKept * kThreads * 16;
  static constexpr int kAhead = kWide * sizeof(T) < 16 || kKept == 0 ? 0 : kRowBytes <= 16384 ? 2 : 1;
  static constexpr size_t kShared = size_t{kAhead} * kRowBytes;  // bytes
};

template <class T, int n>
struct alignas(n * sizeof(T)) Piece {
  T of[n];
};

/// Computed elements in their type.
template <class T, int n>
__device__ Piece<T, n> narrowed_piece(const float (&x)[n]) {
  Piece<T, n> all;
  if constexpr (sizeof(T) == 2 && n % 2 == 0) {
#pragma unroll
    for (int i = 0; i < n; i += 2) {
      const uint32_t pair = packed<T>(x[i], x[i + 1]);
      memcpy(&all.of[i], &pair, sizeof pair);
    }
  } else {
#pragma unroll
    for (int i = 0; i < n; ++i) all.of[i] = narrowed<T>(x[i]);
  }
  return all;
}

/// An element within its row, and its place among those that the thread keeps.
struct At {
  int column, slot;
};

template <class L>
__device__ int64_t row_of_thread() {
  return int64_t{blockIdx.x} * L::kRows + threadIdx.x / L::kOfRow;
}
/// Where piece k of this thread begins in its row.
template <class L>
__device__ int piece_column(int k) {
  return (k * L::kOfRow + static_cast<int>(threadIdx.x) % L::kOfRow) * L::kWide;
}

/// A row of which each thread holds its pieces.
template <class L>
struct Row {
  using T = typename L::T;
  using P = Piece<T, L::kWide>;

  __device__ Row(const T* at, int n) : begin(at), columns(n) {
#pragma unroll
    for (int k = 0; k < L::kKept; ++k)
      if (const int c = piece_column<L>(k); c < columns) kept[k] = *reinterpret_cast<const P*>(begin + c);
  }
  /// The row's pieces are in shared memory: number k of thread t at place k * L::kThreads + t.
  __device__ Row(const T* at, int n, const P* pieces) : begin(at), columns(n) {
#pragma unroll
    for (int k = 0; k < L::kKept; ++k) kept[k] = pieces[k * L::kThreads + static_cast<int>(threadIdx.x)];
  }
  __device__ P piece(int k, int column) const {
    if constexpr (L::kKept > 0) return kept[k];
    return *reinterpret_cast<const P*>(begin + column);
  }

  const T* begin;
  int columns;
  P kept[L::kKept > 0 ? L::kKept : 1];
};

/// A row that many threads read, such as a weight: in memory until it is used. Without memory, all elements
/// are `missing`.
template <class L>
struct SharedRow {
  using T = typename L::T;
  using P = Piece<T, L::kWide>;

  __device__ P piece(int, int column) const {
    if (begin) return *reinterpret_cast<const P*>(begin + column);
    P all;
#pragma unroll
    for (int i = 0; i < L::kWide; ++i) all.of[i] = narrowed<T>(missing);
    return all;
  }

  const T* begin;
  float missing;
};

/// pieces(k, column) for each piece of this thread.
template <class L, class F>
__device__ void each_piece(int columns, F pieces) {
  if constexpr (L::kKept > 0) {
#pragma unroll
    for (int k = 0; k < L::kKept; ++k)
      if (const int c = piece_column<L>(k); c < columns) pieces(k, c);
  } else {
#pragma unroll 4
    for (int c = piece_column<L>(0); c < columns; c += L::kOfRow * L::kWide) pieces(0, c);
  }
}

/// f(at, x...) for each element of this thread, of rows that lie alike.
template <class L, class F, class... R>
__device__ void each(int columns, F f, const R&... rows) {
  each_piece<L>(columns, [&](int k, int column) {
    const auto elements = [&](auto... pieces) {
#pragma unroll
      for (int i = 0; i < L::kWide; ++i) f(At{column + i, k * L::kWide + i}, widened(pieces.of[i])...);
    };
    elements(rows.piece(k, column)...);
  });
}

/// y[column] = f(at, x...). y may be one of the rows.
template <class L, class F, class... R>
__device__ void store(typename L::T* y, int columns, F f, const R&... rows) {
  using T = typename L::T;
  each_piece<L>(columns, [&](int k, int column) {
    const auto elements = [&](auto... pieces) {
      float results[L::kWide];
#pragma unroll
      for (int i = 0; i < L::kWide; ++i)
        results[i] = f(At{column + i, k * L::kWide + i}, widened(pieces.of[i])...);
      *reinterpret_cast<Piece<T, L::kWide>*>(y + column) = narrowed_piece<T>(results);
    };
    elements(rows.piece(k, column)...);
  });
}

/// f(row number, row) for rows that a block takes one after another: while it computes one, the next ones are
/// on their way to shared memory, so that reading never pauses. Rows that are not kept, and are read again
/// for every pass, are a block each.
template <class L, class F>
__device__ void each_row(const typename L::T* x, int64_t rows, int columns, F f) {
  int64_t r = row_of_thread<L>();
  if constexpr (L::kAhead == 0) {
    if (r < rows) f(r, Row<L>(x + r * columns, columns));
  } else {
    using P = Piece<typename L::T, L::kWide>;
    auto* const all = dynamic_shared<P>();
    const int64_t stride = int64_t{gridDim.x} * L::kRows;
    const auto copy = [&](int slot, int64_t row) {
#pragma unroll
      for (int k = 0; k < L::kKept; ++k)
        if (const int c = piece_column<L>(k); c < columns && row < rows)
          copy_async(all + (slot * L::kKept + k) * L::kThreads + threadIdx.x, x + row * columns + c, true);
      end_of_copies();
    };
    for (int i = 0; i < L::kAhead; ++i) copy(i, r + i * stride);
    for (int slot = 0; r < rows; r += stride, slot = slot + 1 == L::kAhead ? 0 : slot + 1) {
      wait_for_copies<L::kAhead - 1>();
      const Row<L> row(x + r * columns, columns, all + slot * L::kKept * L::kThreads);
      copy(slot, r + L::kAhead * stride);
      f(r, row);
    }
  }
}

struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// x of all threads of a row combined, in each of them.
template <class L, class F>
__device__ float over_row(float x, F combine) {
  constexpr int kLanes = L::kOfRow < kWarp ? L::kOfRow : kWarp, kWarps = L::kOfRow / kLanes;
#pragma unroll
  for (int m = kLanes / 2; m > 0; m /= 2) x = combine(x, shuffle_xor(x, m));
  if constexpr (kWarps > 1) {
    __shared__ float of_warps[kWarps];
    sync_block();  // the results of the call before have been read
    if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = x;
    sync_block();
    x = of_warps[threadIdx.x % kWarps];
#pragma unroll
    for (int m = kWarps / 2; m > 0; m /= 2) x = combine(x, shuffle_xor(x, m));
  }
  return x;
}

/// f(Layout*) with the layout for rows of T. `aligned`: every row begins at 16 bytes. kOfBlock: pieces that
/// a thread may keep of long rows.
template <class T, int kOfBlock, class F>
backend::Outcome with_layout(int64_t columns, bool aligned, F f) {
  constexpr int kWide = 16 / sizeof(T);
  const auto at_most = [&](int64_t n) { return columns <= n; };
  if (!aligned) {
    if (at_most(1024)) return f(static_cast<Layout<T, 32, 0, 1>*>(nullptr));
    return f(static_cast<Layout<T, 1024, 0, 1>*>(nullptr));
  }
  if (at_most(32 * 4 * kWide)) return f(static_cast<Layout<T, 32, 4, kWide>*>(nullptr));
  if (at_most(256 * 2 * kWide)) return f(static_cast<Layout<T, 256, 2, kWide>*>(nullptr));
  if (at_most(256 * kOfBlock * kWide)) return f(static_cast<Layout<T, 256, kOfBlock, kWide>*>(nullptr));
  if (at_most(512 * kOfBlock * kWide)) return f(static_cast<Layout<T, 512, kOfBlock, kWide>*>(nullptr));
  if (at_most(1024 * kOfBlock * kWide)) return f(static_cast<Layout<T, 1024, kOfBlock, kWide>*>(nullptr));
  return f(static_cast<Layout<T, 1024, 0, kWide>*>(nullptr));
}
/// Whether a multiprocessor has 227 KB of shared memory, all of which a block may have.
inline bool has_large_shared(const backend::Launch& l) {
  const Device& device = queue_of(l).device;
  return kAnyShared || (device.dependent_launch && device.architecture <= 103);
}

/// f(T*) with the element type of these dtypes.
template <class F>
backend::Outcome with_type(DType type, F f) {
  switch (type) {
    case DType::f16: return f(static_cast<f16*>(nullptr));
    case DType::bf16: return f(static_cast<bf16*>(nullptr));
    default: return f(static_cast<float*>(nullptr));
  }
}

/// Whether rows of `columns` elements begin at 16 bytes in all of these tensors, where they are there.
inline bool aligned_rows(int64_t columns, std::initializer_list<backend::TensorView> all) {
  return std::ranges::all_of(all, [&](backend::TensorView t) {
    if (!t.has()) return true;
    const auto bytes = static_cast<uint64_t>(columns) * byte_size(t.dtype());
    return bytes % 16 == 0 && reinterpret_cast<uintptr_t>(t.data()) % 16 == 0;
  });
}

/// Blocks for so many rows.
template <class L>
Grid blocks_of_rows(int64_t rows) {
  return {static_cast<unsigned>((rows + L::kRows - 1) / L::kRows)};
}

/// Starts a kernel that takes its rows by each_row.
template <class L, class... P, class... A>
Outcome start_rows(const backend::Launch& l, int64_t rows, void (*kernel)(P...), A... arguments) {
  Grid grid = blocks_of_rows<L>(rows);
  if (L::kAhead > 0) {
    const uint64_t at_once = queue_of(l).device.blocks_at_once * kBlock / L::kThreads;
    grid.x = static_cast<unsigned>(std::min<uint64_t>(grid.x, std::max<uint64_t>(at_once, 1)));
  }
  return start(l, grid, L::kThreads, L::kShared, kernel, arguments...);
}

/// Accepts operands of one of f32, f16 and bf16 whose last `trailing` axes are a row.
inline backend::Support takes_rows(backend::TypeView x, int64_t trailing = 1) {
  using backend::Support;
  const DType type = x.dtype();
  if (type != DType::f32 && type != DType::f16 && type != DType::bf16)
    return Support::no("computes on f32, f16 and bf16, got {}", type);
  if (trailing < 1 || trailing > x.rank())
    return Support::no("rows of {} axes, got {} in all", trailing, x.rank());
  int64_t rows = 1, columns = 1;
  for (int64_t d = 0; d < x.rank(); ++d) (d < x.rank() - trailing ? rows : columns) *= x.shape()[d].max();
  if (rows >= int64_t{1} << 31) return Support::no("rows must be below 2^31, got {}", rows);
  if (columns >= int64_t{1} << 30) return Support::no("columns must be below 2^30, got {}", columns);
  return Support::yes();
}
/// The last axis, or why it is another.
inline backend::Support last_axis(const backend::OpCall& c) {
  const int64_t axis = c.attr("axis").integer(-1), rank = c.input(0).rank();
  if (axis == -1 || axis == rank - 1) return backend::Support::yes();
  return backend::Support::no("axis must be last, got {} of {}", axis, rank);
}

/// Rows and columns of a launch's tensor whose last `trailing` axes are a row.
struct RowSizes {
  int64_t rows;
  int columns;
};
inline RowSizes row_sizes(backend::TensorView x, int64_t trailing = 1) {
  int64_t columns = 1;
  for (int64_t d = x.rank() - trailing; d < x.rank(); ++d) columns *= x.dim(d);
  return {columns ? x.size() / columns : 0, static_cast<int>(columns)};
}

}  // namespace weft::cuda
