#include "../update.hpp"

// Clipping, and AdamW's steps along what was clipped (update.hpp).
namespace weft::cuda {

using namespace backend;

namespace {

// Clipped gradients of 16 bits.
template <class T>
struct Clipping {
  struct Piece {
    const T* x;
    const float* norm;
    T* y;
    int64_t n;
  };
  using Common = Update::Clip;
  static __device__ void run(const Piece& p, const Common& c, int64_t begin, int64_t end) {
    scale_elements(p.y, p.x, c.scale(*p.norm), begin, end);
  }
};

double number(const Launch& l, const char* name, double missing) { return l.call().attr(name).real(missing); }

Support accepts_clipping(const OpCall& c) {
  if (c.updates() != 0 && c.raw()->update_inputs[0] != 0) return Support::no("can only write over input 0");
  if (auto s = float_type(c.input(0).dtype()); !s) return s;
  return few_elements(c.input(0));
}
template <class T>
Outcome clip(const Launch& l) {
  const auto* x = l.input(0).data<const T>();
  const auto* norm = l.input(1).data<const float>();
  auto* y = l.output(0).data<T>();
  const int64_t n = l.input(0).size();
  const Update::Clip how{static_cast<float>(number(l, "max_norm", 1)),
                         static_cast<float>(number(l, "epsilon", 1e-6))};
  const std::array reads = {range_of(x, n), range_of(norm, 1)};
  const std::array writes = {range_of(y, n)};
  if constexpr (std::is_same_v<T, float>) {
    Update::Piece piece{};
    piece.gradient = x, piece.norm = norm, piece.clipped = y, piece.n = n;
    Update::Common common{};
    common.clips = true, common.clip = how;
    return collect<Update>(l, common, piece, reads, writes);
  } else {
    return collect<Clipping<T>>(l, how, {x, norm, y, n}, reads, writes);
  }
}

Support accepts_adamw(const OpCall& c) {
  for (int64_t i = 0; i < 7; ++i)
    if (c.input(i).dtype() != DType::f32) return Support::no("computes on f32, got {}", c.input(i).dtype());
  constexpr std::array<uint32_t, 5> over = {0, 2, 3, 5, 6};
  if (c.updates() != 0b11111 || !std::equal(over.begin(), over.end(), c.raw()->update_inputs))
    return Support::no("every result must be written over its operand");
  return few_elements(c.input(0));
}
Update::Common common_of_step(const Launch& l) {
  const double beta1 = number(l, "beta1", 0.9), beta2 = number(l, "beta2", 0.999);
  Update::Common common{};
  common.steps = true;
  common.step = {static_cast<float>(beta1),
                 static_cast<float>(1 - beta1),
                 static_cast<float>(beta2),
                 static_cast<float>(1 - beta2),
                 static_cast<float>(number(l, "epsilon", 1e-8)),
                 static_cast<float>(number(l, "weight_decay", 0.01))};
  return common;
}
Outcome adamw(const Launch& l) {
  const auto out = [&](int64_t i) { return l.output(i).data<float>(); };
  const auto *gradient = l.input(1).data<const float>(), *rate = l.input(4).data<const float>();
  const int64_t n = l.input(0).size();
  const Update::Common common = common_of_step(l);
  const std::array writes = {range_of(out(0), n), range_of(out(1), n), range_of(out(2), n),
                             range_of(out(3), 1), range_of(out(4), 1)};
  const auto steps = [&](Update::Piece& p) {
    p.parameter = out(0), p.mean = out(1), p.square = out(2);
    p.rate = rate, p.mean_weight = out(3), p.square_weight = out(4);
  };
  Queue& queue = queue_of(l);
  {
    const std::lock_guard lock(queue.collecting);
    const std::array reads = {range_of(rate, 1)};
    const auto found = find_update(
        queue, common, range_of(gradient, n), reads, writes,
        [&](const Update::Piece& p) { return p.clipped == gradient && p.n == n && !p.parameter; });
    if (found) {
      steps(*found.piece);
      found.all->join(common);
      found.all->uses(reads, writes);
      return Outcome::ok();
    }
  }
  Update::Piece piece{};
  piece.gradient = gradient, piece.n = n;
  steps(piece);
  return collect<Update>(l, common, piece, std::array{range_of(gradient, n), range_of(rate, 1)}, writes);
}

}  // namespace

std::span<const KernelRecord> adamw_step_pieces() {
  static const KernelRecord all[] = {{.op = "adamw_step",
                                      .variant = "pieces",
                                      .reads = {"beta1", "beta2", "epsilon", "weight_decay"},
                                      .accepts = accepts_adamw,
                                      .launch = adamw,
                                      .in_place = true},
                                     {.op = "global_norm_clip",
                                      .variant = "pieces",
                                      .reads = {"max_norm", "epsilon"},
                                      .accepts = accepts_clipping,
                                      .launch =
                                          [](const Launch& l) {
                                            return with_type(l.input(0).dtype(),
                                                             [&]<class T>(T*) { return clip<T>(l); });
                                          },
                                      .in_place = true}};
  return all;
}

}  // namespace weft::cuda
