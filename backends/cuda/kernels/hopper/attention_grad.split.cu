#include "../../hopper/attention_record.hpp"
#include "../../hopper/attention_split_grad.hpp"

// The gradients of attention of f32 on the tensor cores of architecture 9.0
// (hopper/attention_split_grad.hpp), with heads of up to 64 numbers.
namespace weft::cuda {

using namespace backend;
using hopper::SplitGradWork;

namespace {

/// What the pieces of dq may take: heads are taken in groups that keep to it. Calls with heads of more than a
/// quarter of it, whose groups would not fill the GPU, are left to attention_grad.flash.
constexpr int64_t kMostBytes = int64_t{128} << 20, kAlignment = 16;

int64_t tiles(int rows) { return (int64_t{rows} + kTile - 1) / kTile; }
/// Bytes of the pieces of a head of k and v.
int64_t bytes_of_head(const AttentionSizes& s) {
  return tiles(s.seq_q) * tiles(s.seq_k) * s.shared_by * hopper::kPieceFloats * int64_t{sizeof(float)};
}
int64_t heads_of_keys(const AttentionSizes& s) { return s.batch * (s.heads / s.shared_by); }
int64_t rows_of(const AttentionSizes& s) { return s.batch * s.heads * s.seq_q; }
/// Heads of k and v in a group; groups are about equal.
int64_t heads_at_once(const AttentionSizes& s) {
  const int64_t heads = heads_of_keys(s), fit = std::max<int64_t>(1, kMostBytes / bytes_of_head(s)),
                groups = (heads + fit - 1) / fit;
  return (heads + groups - 1) / groups;
}

Support sizes_of(const OpCall& c, AttentionSizes& s) {
  if (hopper::multiprocessors() == 0) return Support::no("wants GPUs of architecture 9.0 and of one size");
  if (auto known = attention_sizes(c, 6, s); !known) return known;
  if (c.input(0).dtype() != DType::f32) return Support::no("computes in f32, got {}", c.input(0).dtype());
  if (s.dim == 0 || s.dim > kTile || s.dim % 4)
    return Support::no("heads of a multiple of 4 numbers, {} at most, got {}", kTile, s.dim);
  if (rows_of(s) == 0 || s.seq_k == 0) return Support::no("no queries or no keys");
  if (bytes_of_head(s) > kMostBytes / 4)
    return Support::no("{} queries of {} heads and {} keys", s.seq_q, s.shared_by, s.seq_k);
  return Support::yes();
}

Support accepts(const OpCall& c) {
  AttentionSizes unused;
  return sizes_of(c, unused);
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  AttentionSizes s;
  if (auto taken = sizes_of(c, s); !taken) return Outcome::fail(WEFT_UNSUPPORTED, "{}", taken.reason);
  // attention_grad.flash, which takes what is not aligned, wants a number for each row.
  const int64_t bytes = std::max(heads_at_once(s) * bytes_of_head(s), rows_of(s) * int64_t{sizeof(float)});
  plan.workspace = static_cast<uint64_t>(bytes + kAlignment);
  return Outcome::ok();
}

SplitGradWork work_of(const Launch& l, const AttentionSizes& s) {
  const auto in = [&](int i) { return l.input(i).data<const float>(); };
  const auto out = [&](int i) { return l.output(i).data<float>(); };
  const auto space =
      (reinterpret_cast<uintptr_t>(l.workspace().data()) + kAlignment - 1) / kAlignment * kAlignment;
  SplitGradWork w{};
  w.sizes = s;
  w.q_tiles = static_cast<int>(tiles(s.seq_q)), w.k_tiles = static_cast<int>(tiles(s.seq_k));
  w.q = in(0), w.k = in(1), w.v = in(2), w.y = in(3), w.lse = in(4), w.dy = in(5);
  w.dq = out(0), w.dk = out(1), w.dv = out(2);
  w.pieces = reinterpret_cast<float*>(space);
  return w;
}

/// The products of a group of heads, and dq from its pieces.
Outcome run_group(const Launch& l, const SplitGradWork& w) {
  const AttentionSizes& s = w.sizes;
  auto told = start(l, {static_cast<unsigned>(w.order.count())}, hopper::kGroupThreads,
                    sizeof(hopper::SplitGradShared), hopper::split_gradients, w);
  if (!told.good()) return told;
  return start(l, {static_cast<unsigned>(w.heads * s.shared_by * w.q_tiles * hopper::kJoinBlocks)},
               hopper::kJoinThreads, 0, hopper::join_pieces, w);
}

Outcome launch(const Launch& l) {
  AttentionSizes s;
  if (auto taken = sizes_of(l.call(), s); !taken) return Outcome::fail(WEFT_UNSUPPORTED, "{}", taken.reason);
  if (!hopper::is_aligned(l)) return attention_grad_flash().front().launch(l);
  SplitGradWork w = work_of(l, s);
  const auto heads = static_cast<int>(heads_of_keys(s)), at_once = static_cast<int>(heads_at_once(s));
  for (w.first_head = 0; w.first_head < heads; w.first_head += at_once) {
    w.heads = std::min(at_once, heads - w.first_head);
    w.order =
        tile_order(w.k_tiles, w.heads, int64_t{2} * s.dim * int64_t{sizeof(float)} * s.seq_q * s.shared_by);
    if (auto told = run_group(l, w); !told.good()) return told;
  }
  return Outcome::ok();
}

}  // namespace

std::span<const KernelRecord> attention_grad_split() {
  static const KernelRecord all[] = {{.op = "attention_grad",
                                      .variant = "split",
                                      .reads = {"causal", "scale", "seq_first"},
                                      .accepts = accepts,
                                      .prepare = prepare,
                                      .launch = launch,
                                      .rank = 1}};
  return all;
}

}  // namespace weft::cuda
