#include "nn/host_zeros.h"
#include "weft/lists.h"
#include "weft/nn.h"
#include "weft/ops.h"
#include "weft/trace.h"

namespace weft::nn {
namespace {

// Zeros in the shape of a parameter, beside it.
Tensor zeros(const Tensor& like, const IntList& shape, const char* what) {
  Tensor t = Tensor::from_bytes(host_zeros(like.dtype(), shape), shape, like.dtype(), like.backend());
  t.named("adamw." + like.name() + "." + what);
  return t;
}

}  // namespace

AdamW::AdamW(std::vector<Tensor> parameters, const AdamWConfig& config) : config_(config) {
  for (auto& p : parameters) {
    if (p.name().empty())
      throw Error(invalid("AdamW: a parameter of {} has no name; give it one with named()", text(p.type())));
    const auto shape = p.sizes();
    slots_.push_back({p, zeros(p, shape, "mean"), zeros(p, shape, "square"), zeros(p, {}, "mean_weight"),
                      zeros(p, {}, "square_weight")});
  }
}

void AdamW::step(const Tensor& rate) {
  const NoGrad off;  // an update is no part of the next loss
  const Scope scope("adamw");
  std::vector<Tensor> gradients;
  for (auto& s : slots_) {
    gradients.push_back(s.parameter.grad());
    if (!gradients.back())
      throw Error(
          invalid("AdamW: {} has no gradient; call backward() on a loss that uses it", s.parameter.name()));
  }
  if (config_.clip > 0) gradients = clip_global_norm(gradients, config_.clip, config_.clip_epsilon).tensors;
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& s = slots_[i];
    adamw_step(s.parameter, gradients[i], s.mean, s.square, rate, s.mean_weight, s.square_weight,
               config_.beta1, config_.beta2, config_.epsilon, config_.weight_decay);
    s.parameter.clear_grad();
  }
}

std::vector<Tensor> AdamW::states() const {
  std::vector<Tensor> out;
  for (const auto& s : slots_) out.insert(out.end(), {s.mean, s.square, s.mean_weight, s.square_weight});
  return out;
}

void AdamW::replace_states(const std::function<Tensor(const Tensor&)>& with) {
  for (auto& s : slots_)
    for (Tensor* t : {&s.mean, &s.square, &s.mean_weight, &s.square_weight}) {
      Tensor other = with(*t);
      *t = other.named(t->name());
    }
}

}  // namespace weft::nn
