#include "../attention_order.hpp"

// The gradients of attention without its matrix of weights, which are made again from the scores and lse. One
// kernel takes 64 keys through all queries that see them, for dk and dv; another takes 64 queries through
// their keys, for dq: so no sum depends on the order in which blocks run.
namespace weft::cuda {

using namespace backend;

namespace {

template <class T>
struct Pointers {
  const T *q, *k, *v, *y;
  const float* lse;
  const T* dy;
  T *dq, *dk, *dv;
  float* delta;  // [batch, heads, seq_q]: the sum of y dy of each row
};

constexpr int kDeltaThreads = 128;

template <class T>
__global__ void __launch_bounds__(kDeltaThreads) row_products(Pointers<T> p, AttentionSizes sizes) {
  wait_for_kernels_before();
  let_next_kernel_start();
  constexpr int kRowsOfBlock = kDeltaThreads / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t row = blockIdx.x * int64_t{kRowsOfBlock} + threadIdx.x / kWarp;
  const int64_t query = row % sizes.seq_q, head = row / sizes.seq_q % sizes.heads,
                member = row / sizes.seq_q / sizes.heads;
  if (member >= sizes.batch) return;
  const int64_t at = member * sizes.q.batch + head * sizes.q.head + query * sizes.q.row;
  float sum = 0;
  for (int d = lane; d < sizes.dim; d += kWarp) sum += widened(p.y[at + d]) * widened(p.dy[at + d]);
  sum = sum_of<kWarp>(sum);
  if (lane == 0) p.delta[row] = sum;
}

/// What a query's weights and their gradients want beside its scores.
struct alignas(8) Query {
  float shift, delta;
};
/// Query i of the head whose first row is `row`; zeros beyond the last one.
template <class P>
__device__ Query query_of(const P& p, const AttentionSizes& sizes, int64_t row, int i) {
  if (i >= sizes.seq_q) return {};
  const float lse = p.lse[row + i];
  return {lse == -INFINITY ? 0 : lse, p.delta[row + i]};
}

template <class E>
__device__ void store(typename E::Stored* to, int64_t stride, typename E::Out& o, int first, int rows,
                      int dim, float scale) {
  E::finish(o);
#pragma unroll
  for (int r = 0; r < E::kRows; ++r)
#pragma unroll
    for (int e = 0; e < E::kOut; ++e)
      if (first + E::row(r) < rows && E::out_column(e) < dim)
        to[(first + E::row(r)) * stride + E::out_column(e)] =
            narrowed<typename E::Stored>(E::out(o, r, e) * scale);
}

/// A step of the gradients of keys: 64 queries of one of the heads that share them.
struct QueryStep {
  int first, head;
  __device__ void advance(int from, int end) {
    if ((first += kTile) >= end) first = from, ++head;
  }
};

template <class E>
__global__ void __launch_bounds__(E::kThreads)
    gradients_of_keys(Pointers<typename E::Stored> p, AttentionSizes sizes, TileOrder order) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const auto [rank, any_head] = order.place(static_cast<int>(blockIdx.x));
  const int kv_heads = sizes.heads / sizes.shared_by, kv_head = any_head % kv_heads, first_key = rank * kTile;
  const int64_t member = any_head / kv_heads, at_k = member * sizes.k.batch + kv_head * sizes.k.head;
  auto* shared = dynamic_shared<typename E::Element>();
  const auto tile = [&](int i) { return Tile<E>{shared + i * Tile<E>::kElements}; };
  const Tile<E> keys = tile(0), values = tile(1);
  const auto queries = [&](int i) { return tile(2 + i % E::kStages); };
  const auto douts = [&](int i) { return tile(2 + E::kStages + i % E::kStages); };
  auto* scratch = reinterpret_cast<float*>(shared + (2 + 2 * E::kStages) * Tile<E>::kElements);
  alignas(16) __shared__ Query rows[kTile];

  // The first query that sees the first of these keys.
  const int behind = sizes.seq_q - sizes.seq_k,
            from = sizes.causal ? larger(0, first_key + behind) / kTile * kTile : 0;
  const int steps = larger(0, (sizes.seq_q - from + kTile - 1) / kTile) * sizes.shared_by;
  QueryStep step{from, kv_head * sizes.shared_by}, loaded = step;
  TileLoader<E> loader{sizes.rows_of_q()}, key_loader{sizes.rows_of_k()};
  const auto load = [&](int i) {
    const int64_t at = member * sizes.q.batch + loaded.head * sizes.q.head;
    loader.fetch(p.q + at, p.dy + at, loaded.first);
    const bool finite = loader.store(queries(i), douts(i), p.q + at, p.dy + at, loaded.first);
    loaded.advance(from, sizes.seq_q);
    return finite;
  };
  key_loader.fetch(p.k + at_k, p.v + at_k, first_key);
  const bool keys_finite = key_loader.store(keys, values, p.k + at_k, p.v + at_k, first_key);
  if (E::kStages == 2 && steps > 0) load(0);
  end_of_copies();

  typename E::Out dk{}, dv{};
  for (int i = 0; i < steps; ++i) {
    bool finite = keys_finite;
    if (const auto thread = static_cast<int>(threadIdx.x); thread < kTile)
      rows[thread] =
          query_of(p, sizes, (member * sizes.heads + step.head) * sizes.seq_q, step.first + thread);
    if (E::kStages == 1) finite &= load(i);
    if (E::kStages == 2 && i + 1 < steps) load(i + 1);
    end_of_copies();
    wait_for_copies<E::kStages - 1>();
    const bool infinite = sync_asking<E>(finite);
    typename E::Scores weights, ds;
    E::multiply(weights, keys, queries(i), infinite);
    E::multiply(ds, values, douts(i), infinite);
    // Rows beyond the last query are zeros, and so is what they add.
    const int seen = sizes.causal ? step.first - behind - first_key + 1 : kTile;
#pragma unroll
    for (int c = 0; c < E::kColumns; ++c) {
      const Query query = rows[E::column(c)];
#pragma unroll
      for (int r = 0; r < E::kRows; ++r) {
        const float w = E::exp(E::at(weights, r, c) * sizes.scale - query.shift),
                    d = w * (E::at(ds, r, c) - query.delta);
        const bool visible = E::row(r) < seen + E::column(c);
        E::at(weights, r, c) = visible ? w : 0, E::at(ds, r, c) = visible ? d : 0;
      }
    }
    E::mix(dv, weights, douts(i), scratch, infinite);
    E::mix(dk, ds, queries(i), scratch, infinite);
    step.advance(from, sizes.seq_q);
    sync_block();
  }
  store<E>(p.dk + at_k, sizes.k.row, dk, first_key, sizes.seq_k, sizes.dim, sizes.scale);
  store<E>(p.dv + at_k, sizes.k.row, dv, first_key, sizes.seq_k, sizes.dim, 1);
}

template <class E>
__global__ void __launch_bounds__(E::kThreads)
    gradients_of_queries(Pointers<typename E::Stored> p, AttentionSizes sizes, TileOrder order) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const auto [rank, any_head] = order.place(static_cast<int>(blockIdx.x));
  const int head = any_head % sizes.heads, first = (order.tiles - 1 - rank) * kTile;
  const int64_t member = any_head / sizes.heads, row = int64_t{any_head} * sizes.seq_q,
                at_q = member * sizes.q.batch + head * sizes.q.head,
                at_k = member * sizes.k.batch + head / sizes.shared_by * sizes.k.head;
  auto* shared = dynamic_shared<typename E::Element>();
  const auto tile = [&](int i) { return Tile<E>{shared + i * Tile<E>::kElements}; };
  const Tile<E> queries = tile(0), douts = tile(1);
  const auto keys = [&](int i) { return tile(2 + i % E::kStages); };
  const auto values = [&](int i) { return tile(2 + E::kStages + i % E::kStages); };
  auto* scratch = reinterpret_cast<float*>(shared + (2 + 2 * E::kStages) * Tile<E>::kElements);
  TileLoader<E> loader{sizes.rows_of_k()}, query_loader{sizes.rows_of_q()};
  const auto fetch = [&](int i) { loader.fetch(p.k + at_k, p.v + at_k, i * kTile); };
  const auto load = [&](int i) {
    return loader.store(keys(i), values(i), p.k + at_k, p.v + at_k, i * kTile);
  };
  const int tiles = (sizes.visible(smaller(first + kTile, sizes.seq_q) - 1) + kTile - 1) / kTile;
  query_loader.fetch(p.q + at_q, p.dy + at_q, first);
  const bool queries_finite = query_loader.store(queries, douts, p.q + at_q, p.dy + at_q, first);
  if (E::kStages == 2 && tiles > 0) load(0);
  end_of_copies();

  Query own[E::kRows];
  int visible[E::kRows];
#pragma unroll
  for (int r = 0; r < E::kRows; ++r) {
    const int q = first + E::row(r);
    own[r] = query_of(p, sizes, row, q);
    visible[r] = q < sizes.seq_q ? sizes.visible(q) : 0;
  }
  typename E::Out dq{};
  for (int i = 0; i < tiles; ++i) {
    bool finite = queries_finite;
    if (E::kStages == 1) fetch(i), finite &= load(i);
    if (E::kStages == 2 && i + 1 < tiles) load(i + 1);
    end_of_copies();
    wait_for_copies<E::kStages - 1>();
    const bool infinite = sync_asking<E>(finite);
    typename E::Scores weights, ds;
    E::multiply(weights, queries, keys(i), infinite);
    E::multiply(ds, douts, values(i), infinite);
#pragma unroll
    for (int r = 0; r < E::kRows; ++r)
#pragma unroll
      for (int c = 0; c < E::kColumns; ++c) {
        const float w = E::exp(E::at(weights, r, c) * sizes.scale - own[r].shift);
        const bool seen = i * kTile + E::column(c) < visible[r];
        E::at(ds, r, c) = seen ? w * (E::at(ds, r, c) - own[r].delta) : 0;
      }
    E::mix(dq, ds, keys(i), scratch, infinite);
    sync_block();
  }
  store<E>(p.dq + at_q, sizes.q.row, dq, first, sizes.seq_q, sizes.dim, sizes.scale);
}

template <class E>
Outcome run(const Launch& l, const AttentionSizes& sizes) {
  using T = typename E::Stored;
  const auto in = [&](int i) { return l.input(i).data<const T>(); };
  const auto out = [&](int i) { return l.output(i).data<T>(); };
  const Pointers<T> p{
      in(0), in(1),  in(2),  in(3),  l.input(4).data<const float>(),
      in(5), out(0), out(1), out(2), l.workspace().has() ? l.workspace().data<float>() : nullptr};
  const int64_t rows = sizes.batch * sizes.heads * sizes.seq_q, of_block = kDeltaThreads / kWarp;
  const auto blocks = [](int64_t n, int64_t each) { return static_cast<unsigned>((n + each - 1) / each); };
  const size_t shared =
      (2 + 2 * E::kStages) * Tile<E>::kElements * sizeof(typename E::Element) + E::kScratch * sizeof(float);
  if (rows > 0) {
    auto told = start(l, {blocks(rows, of_block)}, kDeltaThreads, 0, row_products<T>, p, sizes);
    if (!told.good()) return told;
  }
  const int64_t each = int64_t{2} * sizes.dim * int64_t{sizeof(T)};  // bytes of a row of two operands
  const auto tiles = [](int n) { return (n + kTile - 1) / kTile; };
  if (const int64_t heads = sizes.heads / sizes.shared_by; sizes.batch * heads * sizes.seq_k > 0) {
    const TileOrder order =
        tile_order(tiles(sizes.seq_k), sizes.batch * heads, each * sizes.seq_q * sizes.shared_by);
    auto told = start(l, {static_cast<unsigned>(order.count())}, E::kThreads, shared, gradients_of_keys<E>, p,
                      sizes, order);
    if (!told.good()) return told;
  }
  if (rows == 0) return Outcome::ok();
  const TileOrder order = tile_order(tiles(sizes.seq_q), sizes.batch * sizes.heads, each * sizes.seq_k);
  return start(l, {static_cast<unsigned>(order.count())}, E::kThreads, shared, gradients_of_queries<E>, p,
               sizes, order);
}

Support accepts(const OpCall& c) {
  AttentionSizes unused;
  return attention_sizes(c, 6, unused);
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  AttentionSizes sizes;
  if (auto s = attention_sizes(c, 6, sizes); !s) return Outcome::fail(WEFT_UNSUPPORTED, "{}", s.reason);
  plan.workspace = static_cast<uint64_t>(sizes.batch * sizes.heads * sizes.seq_q) * sizeof(float);
  return Outcome::ok();
}

Outcome launch(const Launch& l) {
  AttentionSizes sizes;
  if (auto s = attention_sizes(l.call(), 6, sizes); !s)
    return Outcome::fail(WEFT_UNSUPPORTED, "{}", s.reason);
  look_at_addresses(l, sizes);
  return with_engine(l.input(0).dtype(), sizes.dim, [&]<class E>(E*) { return run<E>(l, sizes); });
}

}  // namespace

std::span<const KernelRecord> attention_grad_flash() {
  static const KernelRecord all[] = {{.op = "attention_grad",
                                      .variant = "flash",
                                      .reads = {"causal", "scale", "seq_first"},
                                      .accepts = accepts,
                                      .prepare = prepare,
                                      .launch = launch}};
  return all;
}

}  // namespace weft::cuda
