#include <algorithm>

#include "../collected.hpp"
#include "../kernels.hpp"
#include "../rows.hpp"
#include "../skinny.hpp"

// Products of at most 16 rows with weights. A block takes 16 rows of a weight, and each of its warps every
// eighth piece of them; the rows of x are the columns of a tensor core's product. Weights pass through shared
// memory, where each lane reads what it has copied itself, so that many copies are under way whatever the
// registers hold. Those of constant weights begin before the kernel waits for the kernels before it.
namespace weft::cuda {

using namespace backend;

namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kBlockRows = 16;
constexpr int kLoads = 2;   // pieces that a lane copies at a time, of each of its two rows
constexpr int kStages = 4;  // of copies that are under way
constexpr int kMostItems = 8;  // of a launch: a kernel's arguments take at most 4 KB

/// A part of a call, as a kernel needs it.
struct Item {
  const void* x;
  const void* weights[kMostProducts];
  const void* operands[kMostOperands];
  void* results[kMostResults];
  ProductStep steps[kMostSteps];
  Format operand_formats[kMostOperands], result_formats[kMostResults];
  uint8_t result_steps[kMostResults];
  uint8_t products, n_results, n_steps;
  bool aligned;  // x and weights, and the length of their rows
  int rows, n, k;
};
struct Items {
  Item all[kMostItems];
  int first_blocks[kMostItems + 1];
  int n;
  bool early;  // weights are constant
};
static_assert(sizeof(Items) <= 4000);

struct Bits16 {
  uint32_t of[4];
};

/// The 16 bytes of `row` from element k on; zeros behind its end.
template <class T>
__device__ Bits16 piece_of(const T* row, int k, int end, bool aligned) {
  constexpr int kOf = 16 / sizeof(T);
  Bits16 bits{};
  if (k >= end) return bits;
  if (aligned) return *reinterpret_cast<const Bits16*>(row + k);
  T all[kOf];
  for (int i = 0; i < kOf; ++i) all[i] = k + i < end ? row[k + i] : narrowed<T>(0);
  memcpy(&bits, all, sizeof bits);
  return bits;
}

/// What a lane has of a batch: pieces of the rows g and g + 8 of a weight, g = lane / 4, in shared memory
/// beside those of the other lanes.
struct WeightPieces {
  Bits16 of[kLoads][2][kThreads];
};
/// Pieces of the rows g (and g + 8) of x.
template <int kTiles>
struct RowPieces {
  Bits16 of[kLoads][kTiles];
};

/// Sums of products: of weight rows g and g + 8 with rows 2t and 2t + 1 of each tile of x, t = lane % 4.
template <class T, int kTiles>
struct Sums {
  float of[kTiles][4] = {};

  __device__ void add(const WeightPieces& w, const RowPieces<kTiles>& x) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      // The order in which elements are multiplied is free, as long as both sides have the same.
      const Bits16 top = w.of[i][0][threadIdx.x], bottom = w.of[i][1][threadIdx.x];
      const uint32_t first[4] = {top.of[0], bottom.of[0], top.of[1], bottom.of[1]},
                     second[4] = {top.of[2], bottom.of[2], top.of[3], bottom.of[3]};
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const Bits16& b = x.of[i][tile];
        multiply_add<T>(of[tile], first, {b.of[0], b.of[1]});
        multiply_add<T>(of[tile], second, {b.of[2], b.of[3]});
      }
    }
  }
};
/// Without tensor cores: each lane multiplies its pieces with all rows of x, which it gets from the lanes
/// that read them.
template <int kTiles>
struct Sums<float, kTiles> {
  float all[kTiles * 8][2] = {};  // by row of x: sums of this lane's pieces of weight rows g and g + 8
  float of[kTiles][4];

  __device__ void add(const WeightPieces& w, const RowPieces<kTiles>& x) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const Bits16 top = w.of[i][0][threadIdx.x], bottom = w.of[i][1][threadIdx.x];
#pragma unroll
      for (int row = 0; row < kTiles * 8; ++row)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int from = row % 8 * 4 + static_cast<int>(threadIdx.x) % 4;
          const float b = shuffle(as_float(x.of[i][row / 8].of[e]), from);
          all[row][0] += as_float(top.of[e]) * b;
          all[row][1] += as_float(bottom.of[e]) * b;
        }
    }
  }
  __device__ void end() {
    const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int row = 0; row < kTiles * 8; ++row)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float sum = sum_of<4>(all[row][half]);
        if (row % 8 / 2 == t) of[row / 8][2 * half + row % 2] = sum;
      }
  }
};

__device__ inline float loaded(const void* from, Format format, int64_t i) {
  switch (format) {
    case Format::f16: return widened(static_cast<const f16*>(from)[i]);
    case Format::bf16: return widened(static_cast<const bf16*>(from)[i]);
    default: return static_cast<const float*>(from)[i];
  }
}
__device__ inline void stored(void* to, Format format, int64_t i, float x) {
  switch (format) {
    case Format::f16: static_cast<f16*>(to)[i] = narrowed<f16>(x); break;
    case Format::bf16: static_cast<bf16*>(to)[i] = narrowed<bf16>(x); break;
    default: static_cast<float*>(to)[i] = x;
  }
}
__device__ inline float rounded(float x, Format format) {
  switch (format) {
    case Format::f16: return widened(narrowed<f16>(x));
    case Format::bf16: return widened(narrowed<bf16>(x));
    default: return x;
  }
}

__device__ inline float computed(StepCode code, float a, float b) {
  switch (code) {
    case StepCode::add: return a + b;
    case StepCode::subtract: return a - b;
    case StepCode::multiply: return a * b;
    case StepCode::divide: return a / b;
    case StepCode::smaller: return a != a || a < b ? a : b;
    case StepCode::larger: return a != a || a > b ? a : b;
    case StepCode::exponential: return expf(a);
    case StepCode::tangent: return tanhf(a);
    case StepCode::error_function: return erff(a);
    case StepCode::root: return sqrtf(a);
    default: return a;
  }
}

/// The steps of one element, whose sums are `products`.
__device__ inline void run_steps(const Item& item, const float* products, int row, int column) {
  float values[kMostSteps];
  const int64_t at = int64_t{row} * item.n + column;
  for (int i = 0; i < item.n_steps; ++i) {
    const ProductStep s = item.steps[i];
    float v;
    switch (s.code) {
      case StepCode::product: v = products[s.a]; break;
      case StepCode::element: v = loaded(item.operands[s.a], item.operand_formats[s.a], at); break;
      case StepCode::column: v = loaded(item.operands[s.a], item.operand_formats[s.a], column); break;
      case StepCode::number: v = s.number; break;
      default: v = computed(s.code, values[s.a], values[s.b]);
    }
    values[i] = rounded(v, s.rounded_to);
  }
  for (int i = 0; i < item.n_results; ++i)
    stored(item.results[i], item.result_formats[i], at, values[item.result_steps[i]]);
}

template <class T, int kTiles>
struct SkinnyBlock {
  static constexpr int kOf = 16 / sizeof(T);       // elements of a piece
  static constexpr int kBatch = 4 * kOf * kLoads;  // elements of each row that a warp copies at a time

  const Item& item;
  int first_row;         // of the weights
  WeightPieces* stages;  // kStages of them
  int warp = static_cast<int>(threadIdx.x) / 32, g = static_cast<int>(threadIdx.x) % 32 / 4,
      t = static_cast<int>(threadIdx.x) % 4;
  int own = ((item.k + kBatch - 1) / kBatch - warp + kWarps - 1) / kWarps;  // batches of each product
  int all = own * item.products;

  __device__ int element(int batch, int i) const {
    return (warp + batch * kWarps) * kBatch + (4 * i + t) * kOf;
  }
  /// Begins to copy batch number `at` of all, if it is there.
  __device__ void copy(int at) const {
    WeightPieces& to = stages[at % kStages];
    const int product = at >= own ? 1 : 0, batch = at - product * own;
    const T* weight = static_cast<const T*>(item.weights[product]);
    if (at < all)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = first_row + g + 8 * half;
        const T* from = weight + int64_t{row < item.n ? row : item.n - 1} * item.k;
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
          const int k = element(batch, i);
          Bits16* const place = &to.of[i][half][threadIdx.x];
          if (item.aligned)
            copy_async(place, k < item.k ? from + k : from, k < item.k);
          else
            *place = piece_of(from, k, item.k, false);
        }
      }
    end_of_copies();
  }
  __device__ void load(RowPieces<kTiles>& to, int batch) const {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const int row = g + 8 * tile;
      const T* from = static_cast<const T*>(item.x) + int64_t{row} * item.k;
#pragma unroll
      for (int i = 0; i < kLoads; ++i)
        to.of[i][tile] = piece_of(from, element(batch, i), row < item.rows ? item.k : 0, item.aligned);
    }
  }
  /// The sums of product `number`; `next` has the pieces of x for its first batch, and then for the next
  /// product's.
  __device__ Sums<T, kTiles> product(int number, RowPieces<kTiles>& next) const {
    Sums<T, kTiles> sums;
    for (int batch = 0; batch < own; ++batch) {
      const int at = number * own + batch;
      const RowPieces<kTiles> rows = next;
      copy(at + kStages - 1);
      load(next, batch + 1 < own ? batch + 1 : 0);
      wait_for_copies<kStages - 1>();
      sums.add(stages[at % kStages], rows);
    }
    if constexpr (sizeof(T) == 4) sums.end();
    return sums;
  }
};

template <class T, int kTiles>
__global__ void __launch_bounds__(kThreads, sizeof(T) == 4 ? 2 : 3) multiply_skinny(Items items) {
  __shared__ float shares[kMostProducts][kWarps][kTiles * 8][kBlockRows + 1];
  let_next_kernel_start();
  const int number = static_cast<int>(blockIdx.x);
  int i = 0;
  while (items.first_blocks[i + 1] <= number) ++i;
  const Item& item = items.all[i];
  const SkinnyBlock<T, kTiles> block{item, (number - items.first_blocks[i]) * kBlockRows,
                                     dynamic_shared<WeightPieces>()};
  if (!items.early) wait_for_kernels_before();
  for (int stage = 0; stage < kStages - 1; ++stage) block.copy(stage);
  wait_for_kernels_before();
  RowPieces<kTiles> rows;
  block.load(rows, 0);
  for (int p = 0; p < item.products; ++p) {
    const auto sums = block.product(p, rows);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (int c = 0; c < 4; ++c)
        shares[p][block.warp][8 * tile + 2 * block.t + c % 2][block.g + c / 2 * 8] = sums.of[tile][c];
  }
  sync_block();
  const int column = static_cast<int>(threadIdx.x) % kBlockRows,
            row = static_cast<int>(threadIdx.x) / kBlockRows;
  if (row >= item.rows || block.first_row + column >= item.n) return;
  float products[kMostProducts] = {};
  for (int p = 0; p < item.products; ++p)
#pragma unroll
    for (int w = 0; w < kWarps; ++w) products[p] += shares[p][w][row][column];
  run_steps(item, products, row, block.first_row + column);
}

/// Products that are launched together: those that a queue gets one after another and that do not need each
/// other.
template <class T>
class CollectedProducts : public Collected {
 public:
  explicit CollectedProducts(bool early) { items_.n = 0, items_.first_blocks[0] = 0, items_.early = early; }
  bool has_room(size_t parts, bool early) const {
    return static_cast<size_t>(items_.n) + parts <= kMostItems && items_.early == early;
  }
  void add(const Item& item) {
    items_.all[items_.n] = item;
    items_.first_blocks[items_.n + 1] = items_.first_blocks[items_.n] + (item.n + kBlockRows - 1) / kBlockRows;
    ++items_.n;
    rows_ = std::max(rows_, item.rows);
  }
  void uses(std::span<const Range> reads, std::span<const Range> writes) {
    reads_.insert(reads_.end(), reads.begin(), reads.end());
    writes_.insert(writes_.end(), writes.begin(), writes.end());
  }
  Outcome start(Queue& queue) override {
    const Grid blocks{static_cast<unsigned>(items_.first_blocks[items_.n])};
    constexpr size_t kShared = kStages * sizeof(WeightPieces);
    return rows_ > 8 ? start_on(queue, blocks, kThreads, kShared, multiply_skinny<T, 2>, items_)
                     : start_on(queue, blocks, kThreads, kShared, multiply_skinny<T, 1>, items_);
  }

 private:
  Items items_;
  int rows_ = 0;
};

Support accepts(const OpCall& c) {
  std::string why;
  const auto call = skinny_call(c, why);
  if (!call) return {false, why};
  if (call->rows < 1 || call->n < 1 || call->k < 1) return Support::no("there is nothing to multiply");
  if (call->rows > kSkinnyRows) return Support::no("at most {} rows, got {}", kSkinnyRows, call->rows);
  if (call->n >= int64_t{1} << 28 || call->k >= int64_t{1} << 28) return Support::no("sizes below 2^28");
  if (call->parts.size() > kMostItems) return Support::no("at most {} products", kMostItems);
  const DType type = c.input(call->x).dtype();
  for (const SkinnyPart& p : call->parts)
    for (const int w : p.weights)
      if (c.input(w).dtype() != type) return Support::no("x and weights must have one dtype");
  for (int64_t i = 0; i < c.n_inputs(); ++i)
    for (int64_t d = 0; c.input(i).has() && d < c.input(i).rank(); ++d)
      if (!c.input(i).shape()[d].known()) return Support::no("input {} has sizes that are not known", i);
  return Support::yes();
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  std::string why;
  auto call = skinny_call(c, why);
  if (!call) return Outcome::fail(WEFT_UNSUPPORTED, "{}", why);
  plan.data = new SkinnyCall(std::move(*call));
  return Outcome::ok();
}
void release(weft_plan* plan) {
  delete static_cast<SkinnyCall*>(plan->data);
  plan->data = nullptr;
}

bool is_aligned(const void* at) { return reinterpret_cast<uintptr_t>(at) % 16 == 0; }

Item item_of(const Launch& l, const SkinnyCall& call, const SkinnyPart& part) {
  Item item{};
  item.x = l.input(call.x).data();
  item.rows = static_cast<int>(call.rows), item.n = static_cast<int>(call.n), item.k = static_cast<int>(call.k);
  item.aligned = is_aligned(item.x) && call.k * byte_size(l.input(call.x).dtype()) % 16 == 0;
  for (size_t i = 0; i < part.weights.size(); ++i) {
    item.weights[i] = l.input(part.weights[i]).data();
    item.aligned = item.aligned && is_aligned(item.weights[i]);
  }
  for (size_t i = 0; i < part.operands.size(); ++i) {
    item.operands[i] = l.input(part.operands[i]).data();
    item.operand_formats[i] = part.operand_formats[i];
  }
  for (size_t i = 0; i < part.results.size(); ++i) {
    item.results[i] = l.output(part.results[i]).data();
    item.result_formats[i] = part.result_formats[i];
    item.result_steps[i] = static_cast<uint8_t>(part.result_steps[i]);
  }
  std::ranges::copy(part.steps, item.steps);
  item.products = static_cast<uint8_t>(part.weights.size());
  item.n_results = static_cast<uint8_t>(part.results.size());
  item.n_steps = static_cast<uint8_t>(part.steps.size());
  return item;
}

template <class T>
Outcome collect_products(const Launch& l, const SkinnyCall& call) {
  std::vector<Range> reads, writes;
  const auto range = [](TensorView t) { return Range{t.data(), t.data() + t.bytes()}; };
  for (int64_t i = 0; i < l.call().n_inputs(); ++i)
    if (const TensorView t = l.input(i); t.has()) reads.push_back(range(t));
  for (int64_t i = 0; i < l.call().n_outputs(); ++i) writes.push_back(range(l.output(i)));
  Queue& queue = queue_of(l);
  const std::lock_guard lock(queue.collecting);
  auto* open = dynamic_cast<CollectedProducts<T>*>(queue.collected.get());
  if (!open || !open->has_room(call.parts.size(), call.are_constant) || open->depends(reads, writes)) {
    if (auto settled = settle_locked(queue); !settled.good()) return settled;
    queue.collected = std::make_unique<CollectedProducts<T>>(call.are_constant);
    open = static_cast<CollectedProducts<T>*>(queue.collected.get());
  }
  for (const SkinnyPart& part : call.parts) open->add(item_of(l, call, part));
  open->uses(reads, writes);
  return may_wait(queue) ? Outcome::ok() : settle_locked(queue);
}

Outcome launch(const Launch& l) {
  const auto& call = *static_cast<const SkinnyCall*>(l.raw()->plan->data);
  return with_type(l.input(call.x).dtype(), [&]<class T>(T*) { return collect_products<T>(l, call); });
}

}  // namespace

std::span<const KernelRecord> linear_skinny() {
  static const auto all = [] {
    KernelRecord linear{.op = "linear",
                        .variant = "skinny",
                        .accepts = accepts,
                        .prepare = prepare,
                        .release = release,
                        .launch = launch};
    KernelRecord region = linear;
    region.op = "region", region.reads_all = true;
    return std::vector{linear, region};
  }();
  return all;
}

}  // namespace weft::cuda
