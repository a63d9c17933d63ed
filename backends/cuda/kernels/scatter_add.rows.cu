#include <algorithm>

#include "../rows.hpp"

// Updates added to rows of a table, as an embedding's gradient is. Updates of one row are added in their
// order, so first they are sorted by row: positions are cut into chunks, each position learns how many before
// it in its chunk have its row, and sums over the chunks give it a place. Then a warp adds up a row's
// updates, or a block where there are many. An index outside the table is left out.
namespace weft::cuda {

using namespace backend;

namespace {

constexpr int kThreads = 256, kMostChunks = 64;
constexpr int kColumnsOfWarp = 4 * 32;
constexpr int kMany = 64;  // updates of a row that a block adds up
constexpr int kWarps = kThreads / 32, kMostLongBlocks = 264;

struct Indices {
  const void* of_updates;
  bool wide;  // 64-bit
  int64_t rows;

  /// The row of update i; -1 if the table has none such.
  __device__ int row(int64_t i) const {
    const int64_t r =
        wide ? static_cast<const int64_t*>(of_updates)[i] : static_cast<const int32_t*>(of_updates)[i];
    return r >= 0 && r < rows ? static_cast<int>(r) : -1;
  }
};

struct ScatterSizes {
  int64_t updates, rows, columns;
  int chunk;  // updates of a chunk
  int chunks;
};
ScatterSizes scatter_sizes(int64_t updates, int64_t rows, int64_t columns) {
  const int64_t least = (updates + kMostChunks - 1) / kMostChunks;
  const int64_t chunk = std::max<int64_t>((least + kThreads - 1) / kThreads * kThreads, kThreads);
  return {updates, rows, columns, static_cast<int>(chunk),
          static_cast<int>(std::max<int64_t>((updates + chunk - 1) / chunk, 1))};
}

/// The workspace: how many updates of each chunk a row has, then where they begin; where a row's updates
/// begin among all, and how many there are; ranks within chunks; positions sorted by row; rows with many
/// updates; how many places are taken, and how many rows have many.
struct Sorting {
  int *of_chunks, *begins, *counts, *ranks, *sorted, *long_rows, *taken, *n_long;

  /// For these sizes and all smaller ones, of which some have more chunks.
  static int64_t ints(const ScatterSizes& s) {
    const int64_t chunks = std::clamp<int64_t>((s.updates + kThreads - 1) / kThreads, 1, kMostChunks);
    return s.rows * (chunks + 2) + 2 * s.updates + s.updates / kMany + 3;
  }
  Sorting(int* at, const ScatterSizes& s)
      : of_chunks(at),
        begins(at + s.rows * s.chunks),
        counts(begins + s.rows),
        ranks(counts + s.rows),
        sorted(ranks + s.updates),
        long_rows(sorted + s.updates),
        taken(long_rows + s.updates / kMany + 1),
        n_long(taken + 1) {}
};

__global__ void __launch_bounds__(kThreads) clear(Sorting to, int64_t n) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) to.of_chunks[i] = 0;
  if (i == 0) *to.taken = *to.n_long = 0;
}

__global__ void __launch_bounds__(kThreads) rank_in_chunks(Indices indices, Sorting to, ScatterSizes s) {
  __shared__ int rows_before[kThreads];
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t first = int64_t{blockIdx.x} * kThreads, i = first + threadIdx.x,
                begin = first / s.chunk * s.chunk;
  const int own = i < s.updates ? indices.row(i) : -1;
  int rank = 0;
  for (int64_t j = begin; j <= first; j += kThreads) {
    sync_block();
    rows_before[threadIdx.x] = j + threadIdx.x < s.updates ? indices.row(j + threadIdx.x) : -1;
    sync_block();
    const int n = j < first ? kThreads : static_cast<int>(threadIdx.x);
    for (int k = 0; k < n; ++k) rank += rows_before[k] == own;
  }
  if (own < 0) return;
  to.ranks[i] = rank;
  atomicAdd(&to.of_chunks[begin / s.chunk * s.rows + own], 1);
}

// The places of rows depend on the order in which threads come here, what lies in them does not.
__global__ void __launch_bounds__(kThreads) places_of_rows(Sorting to, ScatterSizes s) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= s.rows) return;
  int count = 0;
  for (int c = 0; c < s.chunks; ++c) {
    int& of_chunk = to.of_chunks[c * s.rows + row];
    const int here = of_chunk;
    of_chunk = count;
    count += here;
  }
  to.counts[row] = count;
  to.begins[row] = count > 0 ? atomicAdd(to.taken, count) : 0;
  if (count > kMany) to.long_rows[atomicAdd(to.n_long, 1)] = static_cast<int>(row);
}

__global__ void __launch_bounds__(kThreads) sort_updates(Indices indices, Sorting to, ScatterSizes s) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int row = i < s.updates ? indices.row(i) : -1;
  if (row < 0) return;
  const int64_t before = to.of_chunks[i / s.chunk * s.rows + row];
  to.sorted[to.begins[row] + before + to.ranks[i]] = static_cast<int>(i);
}

/// Four columns of a thread, 32 apart.
struct Columns {
  int64_t first, end;
  float sums[4];

  template <class T>
  __device__ void add(const T* row) {
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (const int64_t c = first + 32 * k; c < end) sums[k] += widened(row[c]);
  }
  /// Adds updates [begin, end) of those sorted.
  template <class T>
  __device__ void add(const T* updates, const int* sorted, int from, int to) {
#pragma unroll 4
    for (int i = from; i < to; ++i) add(updates + int64_t{sorted[i]} * end);
  }
  template <class T>
  __device__ void store(T* row) const {
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (const int64_t c = first + 32 * k; c < end) row[c] = narrowed<T>(sums[k]);
  }
};

// A warp adds up the few updates of a row.
template <class T>
__global__ void __launch_bounds__(kThreads)
    add_updates(const T* x, const T* updates, T* y, Sorting from, ScatterSizes s) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t of_row = (s.columns + kColumnsOfWarp - 1) / kColumnsOfWarp,
                warp = (int64_t{blockIdx.x} * kThreads + threadIdx.x) / 32, row = warp / of_row;
  if (row >= s.rows || from.counts[row] > kMany) return;
  Columns columns{warp % of_row * kColumnsOfWarp + threadIdx.x % 32, s.columns, {}};
  columns.add(x + row * s.columns);
  columns.add(updates, from.sorted + from.begins[row], 0, from.counts[row]);
  columns.store(y + row * s.columns);
}

// Each warp of a block adds up one part of a row's many updates; the parts are added in their order.
template <class T>
__global__ void __launch_bounds__(kThreads)
    add_many_updates(const T* x, const T* updates, T* y, Sorting from, ScatterSizes s) {
  __shared__ float of_warps[kWarps][kColumnsOfWarp];
  wait_for_kernels_before();
  let_next_kernel_start();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int n_long = *from.n_long;
  for (int i = static_cast<int>(blockIdx.x); i < n_long; i += static_cast<int>(gridDim.x)) {
    const int64_t row = from.long_rows[i];
    const int count = from.counts[row], part = (count + kWarps - 1) / kWarps, begin = warp * part,
              end = begin + part < count ? begin + part : count;
    Columns columns{int64_t{blockIdx.y} * kColumnsOfWarp + lane, s.columns, {}};
    if (warp == 0) columns.add(x + row * s.columns);
    columns.add(updates, from.sorted + from.begins[row], begin, end);
    sync_block();  // the sums of the row before have been read
#pragma unroll
    for (int k = 0; k < 4; ++k) of_warps[warp][lane + 32 * k] = columns.sums[k];
    sync_block();
    if (warp != 0) continue;
#pragma unroll
    for (int k = 0; k < 4; ++k)
      for (int w = 1; w < kWarps; ++w) columns.sums[k] += of_warps[w][lane + 32 * k];
    columns.store(y + row * s.columns);
  }
}

int64_t elements(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

/// Sizes of a call, by its operands' largest shapes or a launch's shapes.
ScatterSizes sizes_of(std::span<const int64_t> x, std::span<const int64_t> index) {
  return scatter_sizes(elements(index), x[0], elements(x.subspan(1)));
}

Support accepts(const OpCall& c) {
  const auto x = c.input(0);
  const DType type = x.dtype(), index = c.input(1).dtype();
  if (type != DType::f32 && type != DType::f16 && type != DType::bf16)
    return Support::no("computes on f32, f16 and bf16, got {}", type);
  if (index != DType::i32 && index != DType::i64)
    return Support::no("indices must be i32 or i64, got {}", index);
  if (c.attr("axis").integer() != 0 || c.attr("batch").integer() != 0 || x.rank() == 0)
    return Support::no("wants axis 0 and no batch, got {} and {}", c.attr("axis").integer(),
                       c.attr("batch").integer());
  if (c.updates() != 0 && c.raw()->update_inputs[0] != 0) return Support::no("can only write over input 0");
  const ScatterSizes s = sizes_of(x.max(), c.input(1).max());
  constexpr int64_t kMost = int64_t{1} << 30;
  if (s.updates > kMost || s.rows > kMost || s.rows * ((s.columns + 127) / 128) > kMost ||
      s.columns > int64_t{1} << 22)
    return Support::no("{} updates of {} rows of {}", s.updates, s.rows, s.columns);
  return Support::yes();
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  const ScatterSizes s = sizes_of(c.input(0).max(), c.input(1).max());
  plan.workspace = static_cast<uint64_t>(Sorting::ints(s)) * sizeof(int);
  return Outcome::ok();
}

Outcome launch(const Launch& l) {
  const TensorView x = l.input(0), index = l.input(1), updates = l.input(2), y = l.output(0);
  if (x.size() == 0) return Outcome::ok();
  const ScatterSizes s = sizes_of(x.dims(), index.dims());
  const Sorting sorting(l.workspace().data<int>(), s);
  const Indices indices{index.data(), index.dtype() == DType::i64, s.rows};
  const auto blocks = [](int64_t n) { return Grid{static_cast<unsigned>((n + kThreads - 1) / kThreads)}; };
  const int64_t of_chunks = s.rows * s.chunks,
                warps = s.rows * ((s.columns + kColumnsOfWarp - 1) / kColumnsOfWarp);
  if (auto told = start(l, blocks(of_chunks), kThreads, 0, clear, sorting, of_chunks); !told.good())
    return told;
  if (s.updates > 0)
    if (auto told = start(l, blocks(s.updates), kThreads, 0, rank_in_chunks, indices, sorting, s);
        !told.good())
      return told;
  if (auto told = start(l, blocks(s.rows), kThreads, 0, places_of_rows, sorting, s); !told.good())
    return told;
  if (s.updates > 0)
    if (auto told = start(l, blocks(s.updates), kThreads, 0, sort_updates, indices, sorting, s); !told.good())
      return told;
  return with_type(x.dtype(), [&]<class T>(T*) {
    const auto *old = x.data<const T>(), *added = updates.data<const T>();
    auto few = start(l, blocks(warps * 32), kThreads, 0, add_updates<T>, old, added, y.data<T>(), sorting, s);
    const int64_t most_long = s.updates / (kMany + 1);
    if (!few.good() || most_long == 0) return few;
    const Grid of_long{static_cast<unsigned>(std::min<int64_t>(most_long, kMostLongBlocks)),
                       static_cast<unsigned>(warps / s.rows)};
    return start(l, of_long, kThreads, 0, add_many_updates<T>, old, added, y.data<T>(), sorting, s);
  });
}

}  // namespace

std::span<const KernelRecord> scatter_add_rows() {
  static const KernelRecord all[] = {{.op = "scatter_add",
                                      .variant = "rows",
                                      .reads = {"axis", "batch"},
                                      .accepts = accepts,
                                      .prepare = prepare,
                                      .launch = launch,
                                      .in_place = true}};
  return all;
}

}  // namespace weft::cuda
