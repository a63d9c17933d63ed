#include <algorithm>

#include "../kernels.hpp"
#include "../rows.hpp"

// Updates added to rows of a table, as an embedding's gradient is. Updates of one row are added in their order,
// so first they are sorted by row: positions are cut into chunks, each position learns how many before it in
// its chunk have its row, and sums over the chunks give it a place. Then each row adds up its updates. An
// index outside the table is left out.
namespace weft::cuda {

using namespace backend;

namespace {

constexpr int kThreads = 256, kMostChunks = 64;
constexpr int kColumnsOfWarp = 4 * 32;

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

/// The workspace: how many updates of each chunk a row has, then where they begin; where a row's updates begin
/// among all, and how many there are; ranks within chunks; positions sorted by row; how many places are taken.
struct Sorting {
  int *of_chunks, *begins, *counts, *ranks, *sorted, *taken;

  static int64_t ints(const ScatterSizes& s) {
    return s.rows * (s.chunks + 2) + 2 * s.updates + 1;
  }
  Sorting(int* at, const ScatterSizes& s)
      : of_chunks(at),
        begins(at + s.rows * s.chunks),
        counts(begins + s.rows),
        ranks(counts + s.rows),
        sorted(ranks + s.updates),
        taken(sorted + s.updates) {}
};

__global__ void __launch_bounds__(kThreads) clear(int* all, int64_t n, int* taken) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) all[i] = 0;
  if (i == 0) *taken = 0;
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

// A warp adds up four pieces of 32 columns of a row.
template <class T>
__global__ void __launch_bounds__(kThreads)
    add_updates(const T* x, const T* updates, T* y, Sorting from, ScatterSizes s) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t of_row = (s.columns + kColumnsOfWarp - 1) / kColumnsOfWarp,
                warp = (int64_t{blockIdx.x} * kThreads + threadIdx.x) / 32, row = warp / of_row,
                first = warp % of_row * kColumnsOfWarp + threadIdx.x % 32;
  if (row >= s.rows) return;
  float sums[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int64_t c = first + 32 * k;
    sums[k] = c < s.columns ? widened(x[row * s.columns + c]) : 0;
  }
  const int* const sorted = from.sorted + from.begins[row];
  const int n = from.counts[row];
#pragma unroll 4
  for (int i = 0; i < n; ++i) {
    const T* const update = updates + int64_t{sorted[i]} * s.columns;
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (const int64_t c = first + 32 * k; c < s.columns) sums[k] += widened(update[c]);
  }
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (const int64_t c = first + 32 * k; c < s.columns) y[row * s.columns + c] = narrowed<T>(sums[k]);
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
  if (index != DType::i32 && index != DType::i64) return Support::no("indices must be i32 or i64, got {}", index);
  if (c.attr("axis").integer() != 0 || c.attr("batch").integer() != 0 || x.rank() == 0)
    return Support::no("wants axis 0 and no batch, got {} and {}", c.attr("axis").integer(),
                       c.attr("batch").integer());
  if (c.updates() != 0 && c.raw()->update_inputs[0] != 0) return Support::no("can only write over input 0");
  const ScatterSizes s = sizes_of(x.max(), c.input(1).max());
  constexpr int64_t kMost = int64_t{1} << 30;
  if (s.updates > kMost || s.rows > kMost || s.rows * ((s.columns + 127) / 128) > kMost)
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
  const int64_t of_chunks = s.rows * s.chunks, warps = s.rows * ((s.columns + kColumnsOfWarp - 1) / kColumnsOfWarp);
  if (auto told = start(l, blocks(of_chunks), kThreads, 0, clear, sorting.of_chunks, of_chunks, sorting.taken);
      !told.good())
    return told;
  if (s.updates > 0)
    if (auto told = start(l, blocks(s.updates), kThreads, 0, rank_in_chunks, indices, sorting, s); !told.good())
      return told;
  if (auto told = start(l, blocks(s.rows), kThreads, 0, places_of_rows, sorting, s); !told.good()) return told;
  if (s.updates > 0)
    if (auto told = start(l, blocks(s.updates), kThreads, 0, sort_updates, indices, sorting, s); !told.good())
      return told;
  return with_type(x.dtype(), [&]<class T>(T*) {
    return start(l, blocks(warps * 32), kThreads, 0, add_updates<T>, x.data<const T>(), updates.data<const T>(),
                 y.data<T>(), sorting, s);
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
