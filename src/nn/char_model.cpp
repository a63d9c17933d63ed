#include <cmath>

#include "weft/nn.h"
#include "weft/ops.h"
#include "weft/trace.h"

namespace weft::nn {
namespace {

const CharModelConfig& checked(const CharModelConfig& c) {
  if (c.vocabulary < 1 || c.context < 1 || c.embed < 1 || c.hidden < 1)
    throw Error(
        invalid("CharModel: sizes must be at least 1, got vocabulary {}, context {}, embed {}, hidden {}",
                c.vocabulary, c.context, c.embed, c.hidden));
  return c;
}

const double kReluGain = std::sqrt(2.0);
// Small first scores: the first loss is near log(vocabulary), that of knowing nothing.
constexpr double kOutputGain = 0.1;

}  // namespace

CharModel::CharModel(const CharModelConfig& config, uint64_t seed, DType dtype)
    : config_(checked(config)),
      init_(seed),
      embedding_("embedding", config.vocabulary, config.embed, init_, dtype),
      hidden1_("hidden1", config.context * config.embed, config.hidden, kReluGain, init_, dtype),
      hidden2_("hidden2", config.hidden, config.hidden, kReluGain, init_, dtype),
      output_("output", config.hidden, config.vocabulary, kOutputGain, init_, dtype),
      drop1_("dropout1", config.dropout, init_),
      drop2_("dropout2", config.dropout, init_) {}

Tensor CharModel::hidden(std::string_view name, const Linear& layer, const Dropout& drop,
                         const Tensor& x) const {
  const Scope scope(name);
  return drop(relu(layer(x)), training);
}

Tensor CharModel::operator()(const Tensor& tokens) const {
  if (tokens.rank() != 2 || !(tokens.dim(1) == Dim(config_.context)))
    throw Error(
        invalid("CharModel: tokens must be [batch, {}], got {}", config_.context, text(tokens.type())));
  const Tensor rows = embedding_(tokens);  // [batch, context, embed]
  const Tensor x = reshape(rows, {tokens.dim(0), config_.context * config_.embed});
  return output_(hidden("block2", hidden2_, drop2_, hidden("block1", hidden1_, drop1_, x)));
}

std::vector<Tensor*> CharModel::parameter_slots() {
  return {&embedding_.table, &hidden1_.weight, &hidden1_.bias, &hidden2_.weight,
          &hidden2_.bias,    &output_.weight,  &output_.bias};
}

std::vector<Tensor> CharModel::parameters() const {
  std::vector<Tensor> all;
  for (const Tensor* t : const_cast<CharModel*>(this)->parameter_slots()) all.push_back(*t);
  return all;
}

std::vector<Tensor> CharModel::states() const { return {drop1_.state, drop2_.state}; }

void CharModel::replace(const Replacement& with) {
  const auto put = [&](Tensor& slot, bool trained) {
    Tensor other = with(slot);
    slot = other.named(slot.name()).requires_grad(trained);
  };
  for (Tensor* t : parameter_slots()) put(*t, true);
  for (Tensor* t : {&drop1_.state, &drop2_.state}) put(*t, false);
}

CharModel CharModel::copy(DType dtype) const {
  CharModel other(config_, 0, dtype);
  std::vector<Tensor> from = parameters();
  for (const auto& s : states()) from.push_back(s);
  size_t i = 0;
  other.replace([&](const Tensor& like) {
    const Tensor& t = from[i++];
    if (t.dtype() == like.dtype()) return Tensor::from_bytes(t.to_bytes(), t.sizes(), t.dtype());
    const auto values = t.to_vector<double>();  // holds every value of a narrower type exactly
    return Tensor::of(std::span<const double>(values), t.sizes(), like.dtype());
  });
  return other;
}

Tensor train_step(const CharModel& model, AdamW& optimizer, const Tensor& tokens, const Tensor& targets,
                  const Tensor& rate) {
  const Tensor loss = cross_entropy(model(tokens), targets);
  loss.backward();
  optimizer.step(rate);
  return loss.detach();
}

}  // namespace weft::nn
