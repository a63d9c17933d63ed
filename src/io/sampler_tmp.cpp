#include <algorithm>
#include <cmath>
#include "weft/text.h"
namespace weft::io {
Sampler::Sampler(double temperature, uint64_t seed) : temperature_(temperature), seed_(seed) {
  if (!(temperature >= 0)) throw Error(invalid("temperature must not be negative, got {}", temperature));
}

int32_t Sampler::pick(std::span<const float> logits) {
  if (logits.size() < 2) throw Error(invalid("a sampler wants two scores or more, got {}", logits.size()));
  const auto best = std::max_element(logits.begin() + 1, logits.end());
  if (temperature_ == 0) return static_cast<int32_t>(best - logits.begin());
  std::vector<double> weight(logits.size(), 0.0);
  double total = 0;
  for (size_t i = 1; i < logits.size(); ++i)
    total += weight[i] = std::exp((logits[i] - *best) / temperature_);
  double left = unit(random_word(seed_, drawn_++)) * total;
  size_t i = 1;
  while (i + 1 < weight.size() && left >= weight[i]) left -= weight[i++];
  return static_cast<int32_t>(i);
}

}  // namespace weft::io
