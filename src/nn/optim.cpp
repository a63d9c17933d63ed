#include "weft/optim.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "nn/host_zeros.h"
#include "weft/lists.h"
#include "weft/ops.h"
#include "weft/trace.h"

namespace weft::nn {
namespace {

// Zeros on the parameter's device.
Tensor zeros(const Tensor& like, const IntList& shape) {
  return Tensor::from_bytes(host_zeros(like.dtype(), shape), shape, like.dtype(), like.backend());
}

}  // namespace

Optimizer::Optimizer(std::string_view name, std::vector<Tensor> parameters,
                     std::initializer_list<StateSpec> states, Clip clip)
    : name_(name), clip_(clip) {
  const NoGrad off;
  if (!(clip.most >= 0 && clip.epsilon >= 0))
    throw Error(
        invalid("{}: clip must be a norm of at least 0, got {}, epsilon {}", name_, clip.most, clip.epsilon));
  std::map<std::string_view, const Tensor*> named;
  for (const Tensor& p : parameters) {
    if (p.name().empty())
      throw Error(
          invalid("{}: a parameter of {} has no name; give it one with named()", name_, text(p.type())));
    const auto [other, fresh] = named.try_emplace(p.name(), &p);
    if (!fresh && other->second->impl() == p.impl()) continue;  // tied: one tensor takes one step
    if (!fresh)
      throw Error(
          invalid("{}: two parameters are named '{}', of {} and {}; their states would have one name "
                  "too, give one of them another with named()",
                  name_, p.name(), text(other->second->type()), text(p.type())));
    const auto own = [&](const char* what) { return name_ + "." + p.name() + "." + what; };
    Slot slot{p, p, {}};
    if (is_half(p.dtype())) slot.value = cast(p, DType::f32).named(own("master"));
    for (const StateSpec& s : states)
      slot.states.push_back(zeros(slot.value, s.scalar ? IntList{} : p.sizes()).named(own(s.name)));
    slots_.push_back(std::move(slot));
  }
}

void Optimizer::step(const Tensor& rate) { step(rate, {}); }

void Optimizer::step(const Tensor& rate, const Tensor& when) {
  const NoGrad off;  // an update is no part of the next loss
  std::vector<const Slot*> moving;
  for (const Slot& s : slots_)
    if (s.parameter.requires_grad() && s.parameter.grad()) moving.push_back(&s);
  if (moving.empty())
    throw Error(invalid("{}: no parameter has a gradient; call backward() on a loss that uses them", name_));
  const Scope scope(name_);
  std::vector<Tensor> gradients;
  for (const Slot* s : moving) {
    const Tensor g = s->parameter.grad(), wide = s->has_master() ? cast(g, s->value.dtype()) : g;
    gradients.push_back(when ? where(when, wide, Tensor::scalar(0, wide.dtype())) : wide);
  }
  const Tensor moves = when ? where(when, rate, Tensor::scalar(0, rate.dtype())) : rate;
  const Tensor norm = clip_.most > 0 ? global_norm(gradients) : Tensor();
  std::vector<Tensor> clipped;  // kept: memory that is used again orders calls which a device may run as one
  for (size_t i = 0; i < moving.size(); ++i) {
    const Slot& slot = *moving[i];
    clipped.push_back(norm ? clip_by_norm(gradients[i], norm, clip_.most, clip_.epsilon) : gradients[i]);
    update(slot, clipped.back(), moves);
    if (slot.has_master()) assign(slot.parameter, slot.value);
  }
  clear_gradients();
}

void Optimizer::clear_gradients() {
  for (Slot& s : slots_) s.parameter.clear_grad();
}

std::vector<Tensor> Optimizer::states() const {
  std::vector<Tensor> out;
  for (const Slot& s : slots_) {
    if (s.has_master()) out.push_back(s.value);
    out.insert(out.end(), s.states.begin(), s.states.end());
  }
  return out;
}

void Optimizer::replace_states(const std::function<Tensor(const Tensor&)>& with) {
  const auto put = [&](Tensor& t) {
    Tensor other = with(t);
    if (!(other.type() == t.type()))
      throw Error(invalid("{} is {}, got {}", t.name(), text(t.type()), text(other.type())));
    t = other.named(t.name());
  };
  for (Slot& s : slots_) {
    if (s.has_master()) put(s.value);
    for (Tensor& t : s.states) put(t);
  }
}

AdamW::AdamW(std::vector<Tensor> parameters, const AdamWConfig& c)
    : Optimizer("adamw", std::move(parameters),
                {{"mean"}, {"square"}, {"mean_weight", true}, {"square_weight", true}},
                {c.clip, c.clip_epsilon}),
      config_(c) {
  if (!(c.beta1 >= 0 && c.beta1 < 1 && c.beta2 >= 0 && c.beta2 < 1))
    throw Error(invalid("adamw: beta1 and beta2 must be in [0, 1), got {} and {}", c.beta1, c.beta2));
}

void AdamW::update(const Slot& s, const Tensor& gradient, const Tensor& rate) {
  adamw_step(s.value, gradient, s.states[0], s.states[1], rate, s.states[2], s.states[3], config_.beta1,
             config_.beta2, config_.epsilon, config_.weight_decay);
}

SGD::SGD(std::vector<Tensor> parameters, const SGDConfig& c)
    : Optimizer("sgd", std::move(parameters), {{"velocity"}}, {c.clip, c.clip_epsilon}), config_(c) {
  if (c.nesterov && !(c.momentum > 0))
    throw Error(invalid("SGD: nesterov wants a momentum above 0, got {}", c.momentum));
}

void SGD::update(const Slot& s, const Tensor& gradient, const Tensor& rate) {
  sgd_step(s.value, gradient, s.states[0], rate, config_.momentum, config_.weight_decay, config_.nesterov);
}

std::string_view name(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::constant: return "constant";
    case ScheduleKind::linear: return "linear";
    case ScheduleKind::cosine: return "cosine";
  }
  throw Error(invalid("no schedule has number {}", static_cast<int>(kind)));
}

double Schedule::at(int64_t step, double done) const {
  const double warm =
      warmup > 0 ? std::min(1.0, static_cast<double>(step + 1) / static_cast<double>(warmup)) : 1;
  const double part = std::clamp(done, 0.0, 1.0);
  double left = 1;  // the remaining part of the decay
  if (kind == ScheduleKind::linear) left = 1 - part;
  if (kind == ScheduleKind::cosine) left = 0.5 * (1 + std::cos(std::numbers::pi * part));
  return rate * warm * (kind == ScheduleKind::constant ? 1 : least + (1 - least) * left);
}

}  // namespace weft::nn
