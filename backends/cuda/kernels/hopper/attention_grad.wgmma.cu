#include "../../hopper/attention_backward.hpp"
#include "../../hopper/attention_backward_rows.hpp"
#include "../../hopper/attention_record.hpp"

// The gradients of attention of bf16 on the tensor cores of architecture 9.0 (hopper/attention_backward.hpp).
// dq is added up in an order that changes from run to run, for callers who want one order by blocks that take
// turns.
namespace weft::cuda {

using namespace backend;

namespace {

/// f16 has too few exponents for the gradients of scores.
Support sizes_of(const OpCall& c, AttentionSizes& s) {
  if (auto taken = hopper::group_sizes(c, 6, s); !taken) return taken;
  if (c.input(0).dtype() != DType::bf16) return Support::no("computes in bf16, got {}", c.input(0).dtype());
  const int64_t terms = std::min<int64_t>(s.seq_k, int64_t{s.seq_q} * s.shared_by);
  if (hopper::parts_of(c) > 1 && terms < hopper::kLeastTerms)
    return Support::no("{} keys and queries at least, got {}", hopper::kLeastTerms, terms);
  return Support::yes();
}

Support accepts(const OpCall& c) {
  AttentionSizes unused;
  return sizes_of(c, unused);
}

template <int kParts, class F>
auto with_tiles(int64_t dim, F f) {
  return dim > 64 ? f(static_cast<hopper::Backward<bf16, 128, 64, kParts>*>(nullptr))
                  : f(static_cast<hopper::Backward<bf16, 64, 64, kParts>*>(nullptr));
}
template <class F>
auto with_tiles(const OpCall& c, const AttentionSizes& s, F f) {
  return hopper::parts_of(c) == 1 ? with_tiles<1>(s.dim, f) : with_tiles<2>(s.dim, f);
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  AttentionSizes s;
  if (auto taken = sizes_of(c, s); !taken) return Outcome::fail(WEFT_UNSUPPORTED, "{}", taken.reason);
  if (!wants_equal_bits(c)) plan.determinism = WEFT_DETERMINISM_ANY;
  plan.workspace =
      static_cast<uint64_t>(with_tiles(c, s, [&]<class B>(B*) { return hopper::backward_floats<B>(s); })) *
          sizeof(float) +
      16;
  return hopper::tell_precision(c, plan);
}

template <class B>
Outcome run(const Launch& l, const AttentionSizes& s) {
  const auto in = [&](int i) { return l.input(i).data<const bf16>(); };
  const auto out = [&](int i) { return l.output(i).data<bf16>(); };
  const auto space = (reinterpret_cast<uintptr_t>(l.workspace().data()) + 15) / 16 * 16;
  const auto work = hopper::backward_work<B>(s, reinterpret_cast<float*>(space), wants_equal_bits(l.call()));
  if (auto settled = settle(queue_of(l)); !settled.good()) return settled;
  hopper::BackwardMaps maps;
  if (auto made = hopper::backward_maps<B>(maps, queue_of(l).stream, DType::bf16, in(0), in(1), in(2), in(5),
                                           out(1), out(2), s);
      !made.good())
    return made;
  const auto heads = static_cast<unsigned>(s.heads * s.batch), tiles = static_cast<unsigned>(work.q_tiles);
  const int64_t rows = int64_t{heads} * work.q_tiles * B::kQueries,
                of_block = hopper::kRowThreads / (B::kD / 8);
  if (auto told = start(l, Grid{static_cast<unsigned>((rows + of_block - 1) / of_block)}, hopper::kRowThreads,
                        0, hopper::prepare_rows<B>, in(3), in(5), l.input(4).data<const float>(), work);
      !told.good())
    return told;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(hopper::multiprocessors(), work.order.count()));
  if (auto told = start(l, Grid{blocks}, B::kThreads, B::kShared, hopper::attention_gradients<B>, maps, work);
      !told.good())
    return told;
  return start(l, Grid{heads * tiles * B::kPieces}, hopper::kGroupThreads, 0, hopper::narrow_queries<B>,
               out(0), work);
}

Outcome launch(const Launch& l) {
  AttentionSizes s;
  if (auto taken = sizes_of(l.call(), s); !taken) return Outcome::fail(WEFT_UNSUPPORTED, "{}", taken.reason);
  if (!hopper::is_aligned(l)) return attention_grad_flash().front().launch(l);
  return with_tiles(l.call(), s, [&]<class B>(B*) { return run<B>(l, s); });
}

}  // namespace

std::span<const KernelRecord> attention_grad_wgmma() {
  static const KernelRecord all[] = {{.op = "attention_grad",
                                      .variant = "wgmma",
                                      .reads = {"causal", "scale", "seq_first"},
                                      .accepts = accepts,
                                      .prepare = prepare,
                                      .launch = launch}};
  return all;
}

}  // namespace weft::cuda
