#include <algorithm>
#include <array>

#include "../chain.hpp"
#include "../collected.hpp"
#include "../hopper/skinny_launch.hpp"
#include "../rows.hpp"
#include "../skinny_row_kernel.hpp"

// Products of at most 16 rows with weights (skinny_kernel.hpp), and the calls that wait to be launched with
// them.
namespace weft::cuda {

using namespace backend;

namespace {

using namespace skinny;

/// Products that are launched together: those that a queue gets one after another and that do not need each
/// other.
template <class T>
class CollectedProducts : public Collected {
 public:
  CollectedProducts() {
    items_.n = 0, items_.first_blocks[0] = 0, items_.has_norm = false, items_.ordered = false;
  }

  void add(const SkinnyNorm& norm) { items_.norm = norm, items_.has_norm = true, rows_ = norm.rows; }
  /// Whether x of these products is what the norm here is going to write.
  bool norms(const void* x, const SkinnyCall& call) const {
    return items_.has_norm && x == items_.norm.y && call.rows == items_.norm.rows &&
           call.k == items_.norm.columns;
  }
  /// `ordered`: sums must not depend on what else is launched with them.
  bool takes(const SkinnyCall& call, const void* x, bool early, bool ordered) const {
    return items_.n + call.parts.size() <= kMostItems && (items_.n == 0 || items_.early == early) &&
           !ordered && !items_.ordered && (!items_.has_norm || norms(x, call));
  }
  const SkinnyNorm& norm() const { return items_.norm; }
  void add(const Item& item, bool early, bool ordered) {
    items_.all[items_.n++] = item;
    items_.early = early, items_.ordered |= ordered;
    rows_ = std::max(rows_, item.rows);
  }
  Outcome start(Queue& queue) override {
    if (is_row()) {
      const bool chained =
          std::is_same_v<T, bf16> && queue.chain && !items_.ordered &&
          queue.chain->add(items_, [copy = *this](Queue& q) mutable { return copy.run_row(q); });
      return chained ? Outcome::ok() : run_row(queue);
    }
    if constexpr (sizeof(T) == 2)
      if (auto launched = run_ring<T>(queue, items_)) return *std::move(launched);
    if (rows_ <= kNormedRows) return run<1, kNormedRows, 4>(queue);
    return rows_ <= 8 ? run<2, 8, 4>(queue) : run<2, 16, 3>(queue);
  }

 private:
  std::span<Item> items() { return {items_.all, static_cast<size_t>(items_.n)}; }
  /// Whether there is one row of x, which a block's shared memory has.
  bool is_row() {
    return rows_ == 1 && std::ranges::all_of(items(), [](const Item& i) {
             return i.aligned && chunks(i) <= kMostChunks &&
                    (i.n_results < 2 || i.result_steps[0] != i.result_steps[1]);
           });
  }
  static int chunks(const Item& i) { return chunks_of(int64_t{i.k} * static_cast<int64_t>(sizeof(T))); }
  Outcome run_row(Queue& queue) {
    int most = 0, rows = 0;
    for (const Item& i : items()) most = std::max(most, chunks(i)), rows += i.n;
    for (Item& i : items()) {
      i.chunks = static_cast<uint8_t>(chunks(i));
      // Warps that are few share rows that are long.
      for (i.split = 1; i.split < 4 && rows * i.split < kRowWarps && 2 * i.split <= i.chunks;) i.split *= 2;
    }
    const bool shares = std::ranges::any_of(items(), [](const Item& i) { return i.split > 1; });
    const int at_once = queue.device.multiprocessors * kBlocks - (items_.has_norm ? 1 : 0);
    const Grid grid = shares || rows <= at_once * kWarps
                          ? blocks_of([](const Item& i) { return kWarps / i.split; })
                          : blocks_by_bytes(at_once);
    return start_on(queue, grid, kThreads, row_bytes(most), multiply_row<T>, items_);
  }
  /// As many blocks as run at a time.
  Grid blocks_by_bytes(int blocks) {
    share_blocks(items_, blocks);
    return {static_cast<unsigned>(items_.first_blocks[items_.n] + (items_.has_norm ? 1 : 0))};
  }
  template <int kRowTiles, int kRows, int kStages>
  Outcome run(Queue& queue) {
    constexpr int kBlockRows = 16 * kRowTiles;
    int tiles = 0;
    for (const Item& i : items()) tiles += (i.n + kBlockRows - 1) / kBlockRows;
    const int at_once = queue.device.multiprocessors * kBlocks - (items_.has_norm ? 1 : 0);
    const Grid blocks =
        tiles > at_once ? blocks_by_bytes(at_once) : blocks_of([](const Item&) { return kBlockRows; });
    return start_on(queue, blocks, kThreads, kStages * sizeof(Batch<kRowTiles, kRows>),
                    multiply_skinny<T, kRowTiles, kRows, kStages>, items_);
  }
  /// Blocks that have so many rows of the weights of an item each.
  template <class Rows>
  Grid blocks_of(Rows rows) {
    for (int i = 0; i < items_.n; ++i) {
      const int each = rows(items_.all[i]);
      items_.first_blocks[i + 1] = items_.first_blocks[i] + (items_.all[i].n + each - 1) / each;
    }
    return {static_cast<unsigned>(items_.first_blocks[items_.n] + (items_.has_norm ? 1 : 0))};
  }

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
  if (!wants_equal_bits(c)) plan.determinism = WEFT_DETERMINISM_ANY;
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
  item.rows = static_cast<int>(call.rows), item.n = static_cast<int>(call.n),
  item.k = static_cast<int>(call.k);
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
  item.n_steps = static_cast<uint8_t>(part.steps.size()), item.leaves = static_cast<uint8_t>(part.leaves);
  return item;
}

/// Whether the weights may be read while kernels before still run: they are constant, or no step of the
/// sequence has written them.
bool are_ready(const Launch& l, const SkinnyCall& call) {
  if (call.are_constant) return true;
  const Bytes* const written = queue_of(l).written;
  if (!written) return false;
  return std::ranges::all_of(call.parts, [&](const SkinnyPart& part) {
    return std::ranges::all_of(part.weights,
                               [&](int w) { return !written->meet(std::array{range_of(l.input(w))}); });
  });
}

template <class T>
Outcome add_products(const Launch& l, const SkinnyCall& call, CollectedProducts<T>& open, bool normed,
                     bool early, std::span<const Range> reads, std::span<const Range> writes) {
  for (const SkinnyPart& part : call.parts) {
    Item item = item_of(l, call, part);
    if (normed) item.x = open.norm().x, item.normed = true;
    open.add(item, early, wants_equal_bits(l.call()));
  }
  open.uses(reads, writes);
  Queue& queue = queue_of(l);
  return may_wait(queue) ? Outcome::ok() : settle_locked(queue);
}

template <class T>
Outcome collect_products(const Launch& l, const SkinnyCall& call) {
  using Products = CollectedProducts<T>;
  const void* const x = l.input(call.x).data();
  std::vector<Range> reads, writes;
  for (int64_t i = 0; i < l.call().n_inputs(); ++i)
    if (const TensorView t = l.input(i); t.has() && i != call.x) reads.push_back(range_of(t));
  for (int64_t i = 0; i < l.call().n_outputs(); ++i) writes.push_back(range_of(l.output(i)));
  Queue& queue = queue_of(l);
  const std::lock_guard lock(queue.collecting);
  reads.push_back(range_of(l.input(call.x)));
  const bool early = are_ready(l, call);
  std::span<const Range> own = reads;  // without x where that is made by the launch itself
  auto* open = queue.collected.find<Products>(reads, writes, [&](const Products& products) {
    own = std::span(reads).first(reads.size() - (products.norms(x, call) ? 1 : 0));
    return products.takes(call, x, early, wants_equal_bits(l.call())) && !products.depends(own, writes);
  });
  if (!open) {
    own = reads;
    if (auto told = wait_last(queue, std::make_unique<Products>(), &open); !told.good()) return told;
  }
  return add_products(l, call, *open, open->norms(x, call), early, own, writes);
}

Outcome launch(const Launch& l) {
  const auto& call = *static_cast<const SkinnyCall*>(l.raw()->plan->data);
  return with_type(l.input(call.x).dtype(), [&]<class T>(T*) { return collect_products<T>(l, call); });
}

}  // namespace

Outcome collect_norm(const Launch& l, const SkinnyNorm& norm) {
  const int64_t n = int64_t{norm.rows} * norm.columns;
  Queue& queue = queue_of(l);
  const std::lock_guard lock(queue.collecting);
  auto products = std::make_unique<CollectedProducts<bf16>>();
  products->add(norm);
  products->uses(std::array{range_of(norm.x, n), range_of(norm.weight, norm.weight ? norm.columns : 0)},
                 std::array{range_of(norm.y, n)});
  if (auto told = wait_last(queue, std::move(products)); !told.good()) return told;
  return may_wait(queue) ? Outcome::ok() : settle_locked(queue);
}

std::span<const KernelRecord> linear_skinny() {
  static const auto all = [] {
    KernelRecord linear{.op = "linear",
                        .variant = "skinny",
                        .accepts = accepts,
                        .prepare = prepare,
                        .release = release,
                        .launch = launch,
                        .determinism = WEFT_DETERMINISM_RUN};  // the order depends on how many rows there are
    KernelRecord region = linear;
    region.op = "region", region.reads_all = true;
    return std::vector{linear, region};
  }();
  return all;
}

}  // namespace weft::cuda
