#include "../attention_call.hpp"

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
struct Query {
  float shift, delta;
};
__device__ inline Query query_of(const float* lse, const float* delta, int64_t row) {
  return {lse[row] == -INFINITY ? 0 : lse[row], delta[row]};
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

template <class E>
__global__ void __launch_bounds__(E::kThreads)
    gradients_of_keys(Pointers<typename E::Stored> p, AttentionSizes sizes) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int kv_head = static_cast<int>(blockIdx.y), first_key = static_cast<int>(blockIdx.x) * kTile;
  const int64_t at_k = blockIdx.z * sizes.k.batch + kv_head * sizes.k.head;
  auto* shared = dynamic_shared<typename E::Element>();
  const auto tile = [&](int i) { return Tile<E>{shared + i * Tile<E>::kElements}; };
  const Tile<E> keys = tile(0), values = tile(1);
  const auto queries = [&](int i) { return tile(2 + i % E::kStages); };
  const auto douts = [&](int i) { return tile(2 + E::kStages + i % E::kStages); };
  auto* scratch = reinterpret_cast<float*>(shared + (2 + 2 * E::kStages) * Tile<E>::kElements);

  // The first query that sees the first of these keys.
  const int from = sizes.causal ? larger(0, first_key + sizes.seq_q - sizes.seq_k) / kTile : 0;
  const int tiles = larger(0, (sizes.seq_q + kTile - 1) / kTile - from), steps = tiles * sizes.shared_by;
  const auto head_of = [&](int i) { return kv_head * sizes.shared_by + i / tiles; };
  const auto first_of = [&](int i) { return (from + i % tiles) * kTile; };
  const auto load = [&](int i) {
    const int64_t at = blockIdx.z * sizes.q.batch + head_of(i) * sizes.q.head;
    E::load(queries(i), p.q + at, sizes.q.row, first_of(i), sizes.seq_q, sizes.dim, sizes.aligned);
    E::load(douts(i), p.dy + at, sizes.q.row, first_of(i), sizes.seq_q, sizes.dim, sizes.aligned);
  };
  E::load(keys, p.k + at_k, sizes.k.row, first_key, sizes.seq_k, sizes.dim, sizes.aligned);
  E::load(values, p.v + at_k, sizes.k.row, first_key, sizes.seq_k, sizes.dim, sizes.aligned);
  if (E::kStages == 2 && steps > 0) load(0);
  end_of_copies();

  typename E::Out dk{}, dv{};
  for (int i = 0; i < steps; ++i) {
    if (E::kStages == 1) load(i);
    if (E::kStages == 2 && i + 1 < steps) load(i + 1);
    end_of_copies();
    wait_for_copies<E::kStages - 1>();
    sync_block();
    const int64_t row = (blockIdx.z * int64_t{sizes.heads} + head_of(i)) * sizes.seq_q;
    typename E::Scores weights, ds;
    E::multiply(weights, keys, queries(i));
    E::multiply(ds, values, douts(i));
#pragma unroll
    for (int c = 0; c < E::kColumns; ++c) {
      const int q = first_of(i) + E::column(c);
      const bool there = q < sizes.seq_q;
      const Query query = there ? query_of(p.lse, p.delta, row + q) : Query{};
      const int visible = there ? sizes.visible(q) - first_key : 0;
#pragma unroll
      for (int r = 0; r < E::kRows; ++r) {
        float& w = E::at(weights, r, c);
        w = E::row(r) < visible ? E::exp(w * sizes.scale - query.shift) : 0;
        E::at(ds, r, c) = E::row(r) < visible ? w * (E::at(ds, r, c) - query.delta) : 0;
      }
    }
    E::mix(dv, weights, douts(i), scratch);
    E::mix(dk, ds, queries(i), scratch);
    sync_block();
  }
  store<E>(p.dk + at_k, sizes.k.row, dk, first_key, sizes.seq_k, sizes.dim, sizes.scale);
  store<E>(p.dv + at_k, sizes.k.row, dv, first_key, sizes.seq_k, sizes.dim, 1);
}

template <class E>
__global__ void __launch_bounds__(E::kThreads)
    gradients_of_queries(Pointers<typename E::Stored> p, AttentionSizes sizes) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int head = static_cast<int>(blockIdx.y), first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kTile;
  const int64_t at_q = blockIdx.z * sizes.q.batch + head * sizes.q.head,
                at_k = blockIdx.z * sizes.k.batch + head / sizes.shared_by * sizes.k.head,
                row = (blockIdx.z * int64_t{sizes.heads} + head) * sizes.seq_q;
  auto* shared = dynamic_shared<typename E::Element>();
  const auto tile = [&](int i) { return Tile<E>{shared + i * Tile<E>::kElements}; };
  const Tile<E> queries = tile(0), douts = tile(1);
  const auto keys = [&](int i) { return tile(2 + i % E::kStages); };
  const auto values = [&](int i) { return tile(2 + E::kStages + i % E::kStages); };
  auto* scratch = reinterpret_cast<float*>(shared + (2 + 2 * E::kStages) * Tile<E>::kElements);
  const auto load = [&](int i) {
    E::load(keys(i), p.k + at_k, sizes.k.row, i * kTile, sizes.seq_k, sizes.dim, sizes.aligned);
    E::load(values(i), p.v + at_k, sizes.k.row, i * kTile, sizes.seq_k, sizes.dim, sizes.aligned);
  };
  const int tiles = (sizes.visible(smaller(first + kTile, sizes.seq_q) - 1) + kTile - 1) / kTile;
  E::load(queries, p.q + at_q, sizes.q.row, first, sizes.seq_q, sizes.dim, sizes.aligned);
  E::load(douts, p.dy + at_q, sizes.q.row, first, sizes.seq_q, sizes.dim, sizes.aligned);
  if (E::kStages == 2 && tiles > 0) load(0);
  end_of_copies();

  Query own[E::kRows];
  int visible[E::kRows];
#pragma unroll
  for (int r = 0; r < E::kRows; ++r) {
    const int q = first + E::row(r);
    own[r] = q < sizes.seq_q ? query_of(p.lse, p.delta, row + q) : Query{};
    visible[r] = q < sizes.seq_q ? sizes.visible(q) : 0;
  }
  typename E::Out dq{};
  for (int i = 0; i < tiles; ++i) {
    if (E::kStages == 1) load(i);
    if (E::kStages == 2 && i + 1 < tiles) load(i + 1);
    end_of_copies();
    wait_for_copies<E::kStages - 1>();
    sync_block();
    typename E::Scores weights, ds;
    E::multiply(weights, queries, keys(i));
    E::multiply(ds, douts, values(i));
#pragma unroll
    for (int r = 0; r < E::kRows; ++r)
#pragma unroll
      for (int c = 0; c < E::kColumns; ++c) {
        const float w = E::exp(E::at(weights, r, c) * sizes.scale - own[r].shift);
        const bool seen = i * kTile + E::column(c) < visible[r];
        E::at(ds, r, c) = seen ? w * (E::at(ds, r, c) - own[r].delta) : 0;
      }
    E::mix(dq, ds, keys(i), scratch);
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
  const auto batch = static_cast<unsigned>(sizes.batch);
  const size_t shared =
      (2 + 2 * E::kStages) * Tile<E>::kElements * sizeof(typename E::Element) + E::kScratch * sizeof(float);
  if (rows > 0) {
    auto told = start(l, {blocks(rows, of_block)}, kDeltaThreads, 0, row_products<T>, p, sizes);
    if (!told.good()) return told;
  }
  if (const int64_t heads = sizes.heads / sizes.shared_by; sizes.batch * heads * sizes.seq_k > 0) {
    auto told = start(l, {blocks(sizes.seq_k, kTile), static_cast<unsigned>(heads), batch}, E::kThreads,
                      shared, gradients_of_keys<E>, p, sizes);
    if (!told.good()) return told;
  }
  if (rows == 0) return Outcome::ok();
  return start(l, {blocks(sizes.seq_q, kTile), static_cast<unsigned>(sizes.heads), batch}, E::kThreads,
               shared, gradients_of_queries<E>, p, sizes);
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
