#include "../attention_order.hpp"

// Attention without its matrix of scores: a block takes 64 queries through all keys that they see, 64 at a
// time, and rescales what it has when a larger score comes (Dao et al., FlashAttention-2, 2023).
namespace weft::cuda {

using namespace backend;

namespace {

template <class T>
struct Pointers {
  const T *q, *k, *v;
  T* y;
  float* lse;
  const int*
      marks;  ///< null, or four for each tile of queries: where they are 0 the results stay as they are
};

/// The running maximum and sum of the rows of one thread.
template <class E>
struct Rows {
  float most[E::kRows], sum[E::kRows];
};

/// Scores become weights exp(score - most), those that are not seen 0; o and the sums are rescaled.
template <class E>
__device__ void weigh(typename E::Scores& s, typename E::Out& o, Rows<E>& rows, const AttentionSizes& sizes,
                      int first_query, int first_key) {
#pragma unroll
  for (int r = 0; r < E::kRows; ++r) {
    const int visible = sizes.visible(first_query + E::row(r)) - first_key;
    float most = rows.most[r];
#pragma unroll
    for (int c = 0; c < E::kColumns; ++c) {
      float& x = E::at(s, r, c);
      x = E::column(c) < visible ? x * sizes.scale : -INFINITY;
      most = fmaxf(most, x);
    }
    most = largest_of<E::kSharers>(most);
    const float shift = most == -INFINITY ? 0 : most, old = expf(rows.most[r] - shift);
    float sum = 0;
#pragma unroll
    for (int c = 0; c < E::kColumns; ++c) sum += E::at(s, r, c) = E::exp(E::at(s, r, c) - shift);
    rows.sum[r] = rows.sum[r] * old + sum_of<E::kSharers>(sum);
    rows.most[r] = most;
#pragma unroll
    for (int e = 0; e < E::kOut; ++e) E::out(o, r, e) *= old;
  }
}

template <class E>
__global__ void __launch_bounds__(E::kThreads)
    attention_forward(Pointers<typename E::Stored> p, AttentionSizes sizes, TileOrder order) {
  using Element = typename E::Element;
  wait_for_kernels_before();
  let_next_kernel_start();
  // The last queries see the most keys.
  const auto [rank, any_head] = order.place(static_cast<int>(blockIdx.x));
  const int head = any_head % sizes.heads, first = (order.tiles - 1 - rank) * kTile;
  if (p.marks) {
    const int* const at = p.marks + (int64_t{any_head} * order.tiles + first / kTile) * 4;
    if (!(at[0] | at[1] | at[2] | at[3])) return;
  }
  const int64_t member = any_head / sizes.heads;
  const int64_t at_q = member * sizes.q.batch + head * sizes.q.head,
                at_k = member * sizes.k.batch + head / sizes.shared_by * sizes.k.head;
  auto* shared = dynamic_shared<Element>();
  const Tile<E> queries{shared};
  const auto keys = [&](int i) { return Tile<E>{shared + (1 + i % E::kStages) * Tile<E>::kElements}; };
  const auto values = [&](int i) {
    return Tile<E>{shared + (1 + E::kStages + i % E::kStages) * Tile<E>::kElements};
  };
  auto* scratch = reinterpret_cast<float*>(shared + (1 + 2 * E::kStages) * Tile<E>::kElements);
  TileLoader<E> loader{sizes.rows_of_k()};
  const auto fetch = [&](int i) { loader.fetch(p.k + at_k, p.v + at_k, i * kTile); };
  const auto load = [&](int i) {
    return loader.store(keys(i), values(i), p.k + at_k, p.v + at_k, i * kTile);
  };

  const int tiles = (sizes.visible(smaller(first + kTile, sizes.seq_q) - 1) + kTile - 1) / kTile;
  typename E::Fetched fetched;
  E::fetch(fetched, p.q + at_q, sizes.rows_of_q(), first);
  const bool queries_finite = E::store(queries, fetched, p.q + at_q, sizes.rows_of_q(), first);
  end_of_copies();
  if (E::kStages == 2 && tiles > 0) load(0);
  end_of_copies();
  wait_for_copies<1>();
  sync_block();
  Rows<E> rows;
  typename E::Out o{};
  for (int r = 0; r < E::kRows; ++r) rows.most[r] = -INFINITY, rows.sum[r] = 0;
  for (int i = 0; i < tiles; ++i) {
    bool finite = queries_finite;
    if (E::kStages == 1) fetch(i), finite &= load(i);
    if (E::kStages == 2 && i + 1 < tiles) load(i + 1);
    end_of_copies();
    wait_for_copies<E::kStages - 1>();
    const bool infinite = sync_asking<E>(finite);
    typename E::Scores s;
    E::multiply(s, queries, keys(i), infinite);
    weigh<E>(s, o, rows, sizes, first, i * kTile);
    E::mix(o, s, values(i), scratch, infinite);
    sync_block();
  }
  E::finish(o);
#pragma unroll
  for (int r = 0; r < E::kRows; ++r) {
    const int query = first + E::row(r);
    if (query >= sizes.seq_q) continue;
    const float sum = rows.sum[r] == 0 ? 1 : rows.sum[r],
                shift = rows.most[r] == -INFINITY ? 0 : rows.most[r];
    auto* y = p.y + at_q + query * sizes.q.row;
#pragma unroll
    for (int e = 0; e < E::kOut; ++e)
      if (E::out_column(e) < sizes.dim)
        y[E::out_column(e)] = narrowed<typename E::Stored>(E::out(o, r, e) / sum);
    if (E::out_column(0) == 0) p.lse[int64_t{any_head} * sizes.seq_q + query] = shift + logf(rows.sum[r]);
  }
}

template <class E>
Outcome run(const Launch& l, const AttentionSizes& sizes, const int* marks) {
  using T = typename E::Stored;
  const Pointers<T> p{l.input(0).data<const T>(), l.input(1).data<const T>(), l.input(2).data<const T>(),
                      l.output(0).data<T>(),      l.output(1).data<float>(),  marks};
  const TileOrder order = tile_order((sizes.seq_q + kTile - 1) / kTile, sizes.batch * sizes.heads,
                                     int64_t{2} * sizes.seq_k * sizes.dim * int64_t{sizeof(T)});
  const size_t shared =
      (1 + 2 * E::kStages) * Tile<E>::kElements * sizeof(typename E::Element) + E::kScratch * sizeof(float);
  return start(l, Grid{static_cast<unsigned>(order.count())}, E::kThreads, shared, attention_forward<E>, p,
               sizes, order);
}

Support accepts(const OpCall& c) {
  AttentionSizes unused;
  return attention_sizes(c, 3, unused);
}

Outcome launch(const Launch& l) {
  AttentionSizes sizes;
  if (auto s = attention_sizes(l.call(), 3, sizes); !s)
    return Outcome::fail(WEFT_UNSUPPORTED, "{}", s.reason);
  if (sizes.batch * sizes.heads * sizes.seq_q == 0) return Outcome::ok();
  look_at_addresses(l, sizes);
  return with_engine(l.input(0).dtype(), sizes.dim, [&]<class E>(E*) { return run<E>(l, sizes, nullptr); });
}

}  // namespace

Outcome attention_of_marked(const Launch& l, const AttentionSizes& sizes, const int* marks) {
  AttentionSizes of = sizes;
  look_at_addresses(l, of);
  return with_engine(l.input(0).dtype(), of.dim, [&]<class E>(E*) { return run<E>(l, of, marks); });
}

std::span<const KernelRecord> attention_flash() {
  static const KernelRecord all[] = {{.op = "attention",
                                      .variant = "flash",
                                      .reads = {"causal", "scale", "seq_first"},
                                      .accepts = accepts,
                                      .launch = launch}};
  return all;
}

}  // namespace weft::cuda
