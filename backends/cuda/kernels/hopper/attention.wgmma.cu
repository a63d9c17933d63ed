#include "../../hopper/attention_forward.hpp"
#include "../../hopper/attention_record.hpp"

// Attention of 16-bit floats on the tensor cores of architecture 9.0 (hopper/attention_forward.hpp).
namespace weft::cuda {

using namespace backend;

namespace {

Support sizes_of(const OpCall& c, AttentionSizes& s) {
  if (auto taken = hopper::group_sizes(c, 3, s); !taken) return taken;
  if (hopper::parts_of(c) > 1 && s.seq_k < hopper::kLeastTerms)
    return Support::no("{} keys at least, got {}", hopper::kLeastTerms, s.seq_k);
  return Support::yes();
}

Support accepts(const OpCall& c) {
  AttentionSizes unused;
  return sizes_of(c, unused);
}

template <class F>
Outcome run(const Launch& l, const AttentionSizes& s) {
  if (auto settled = settle(queue_of(l)); !settled.good()) return settled;
  hopper::ForwardMaps maps;
  const auto at = [&](int i) { return l.input(i).data(); };
  if (auto made = hopper::forward_maps<F>(maps, queue_of(l).stream, l.input(0).dtype(), at(0), at(1), at(2),
                                          l.output(0).data(), s);
      !made.good())
    return made;
  auto* const not_numbers = F::kParts > 1 ? l.workspace().data<int>() : nullptr;
  const auto work = hopper::forward_work<F>(s, l.output(1).data<float>(), not_numbers);
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(hopper::multiprocessors(), work.order.count()));
  auto told = start(l, Grid{blocks}, F::kThreads, F::kShared, hopper::attention_of_groups<F>, maps, work);
  return told.good() && not_numbers ? attention_of_marked(l, s, not_numbers) : told;
}

template <class T>
Outcome run_of(const Launch& l, const AttentionSizes& s, int parts) {
  using hopper::Forward;
  if (s.dim > 64)
    return parts == 1 ? run<Forward<T, 128, 2, 128, 2, 1>>(l, s) : run<Forward<T, 128, 2, 128, 2, 2>>(l, s);
  return parts == 1 ? run<Forward<T, 64, 2, 128, 2, 1, false>>(l, s)
                    : run<Forward<T, 64, 2, 128, 2, 2>>(l, s);
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  AttentionSizes s;
  if (auto taken = sizes_of(c, s); !taken) return Outcome::fail(WEFT_UNSUPPORTED, "{}", taken.reason);
  const int64_t tiles = (s.seq_q + hopper::kGroupRows - 1) / hopper::kGroupRows;
  if (hopper::parts_of(c) > 1)
    plan.workspace = static_cast<uint64_t>(s.batch * s.heads * tiles * 4) * sizeof(int);
  return hopper::tell_precision(c, plan);
}

Outcome launch(const Launch& l) {
  AttentionSizes s;
  if (auto taken = sizes_of(l.call(), s); !taken) return Outcome::fail(WEFT_UNSUPPORTED, "{}", taken.reason);
  if (!hopper::is_aligned(l)) return attention_flash().front().launch(l);
  const int parts = hopper::parts_of(l.call());
  return l.input(0).dtype() == DType::bf16 ? run_of<bf16>(l, s, parts) : run_of<f16>(l, s, parts);
}

}  // namespace

std::span<const KernelRecord> attention_wgmma() {
  static const KernelRecord all[] = {{.op = "attention",
                                      .variant = "wgmma",
                                      .reads = {"causal", "scale", "seq_first"},
                                      .accepts = accepts,
                                      .prepare = prepare,
                                      .launch = launch}};
  return all;
}

}  // namespace weft::cuda
