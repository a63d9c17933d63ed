#include <cmath>

#include "weft/nn.h"
#include "weft/ops.h"

namespace weft::nn {
namespace {

const CharModelConfig& checked(const CharModelConfig& c) {
  if (c.vocabulary < 1 || c.context < 1 || c.embed < 1 || c.hidden < 1)
    throw Error(
        invalid("CharModel: sizes must be at least 1, got vocabulary {}, context {}, embed {}, hidden {}",
                c.vocabulary, c.context, c.embed, c.hidden));
  return c;
}

/// Outputs with `gain` times the variance of the inputs (He et al., Delving deep into rectifiers, ICCV 2015:
/// 2 keeps it through relu).
Initial kept_variance(int64_t in, double gain) {
  return Initial::uniform(std::sqrt(3 * gain / static_cast<double>(in)));
}
// Small: the first loss is near log(vocabulary), that of knowing nothing.
constexpr double kFirstScores = 0.01;

}  // namespace

CharModel::CharModel(const CharModelConfig& config)
    : config_(checked(config)),
      embedding_(config.vocabulary, config.embed),
      hidden1_(config.context * config.embed, config.hidden, true,
               kept_variance(config.context * config.embed, 2)),
      hidden2_(config.hidden, config.hidden, true, kept_variance(config.hidden, 2)),
      output_(config.hidden, config.vocabulary, true, kept_variance(config.hidden, kFirstScores)),
      drop1_(config.dropout),
      drop2_(config.dropout) {}

void CharModel::fields(Fields& f) {
  f.child("embedding", embedding_), f.child("hidden1", hidden1_), f.child("hidden2", hidden2_);
  f.child("output", output_), f.child("dropout1", drop1_), f.child("dropout2", drop2_);
}

Tensor CharModel::operator()(const Tensor& tokens) const {
  if (tokens.rank() != 2 || !(tokens.dim(1) == Dim(config_.context)))
    throw Error(
        invalid("CharModel: tokens must be [batch, {}], got {}", config_.context, text(tokens.type())));
  const Tensor rows = embedding_(tokens);  // [batch, context, embed]
  Tensor x = reshape(rows, {tokens.dim(0), config_.context * config_.embed});
  x = drop1_(relu(hidden1_(x)));
  x = drop2_(relu(hidden2_(x)));
  return output_(x);
}

}  // namespace weft::nn
