#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "weft/models.h"
#include "weft/random.h"
#include "weft/vision.h"

// Small models, and what they learn: with weights and batches that scripts/train_oracle draws by the same
// rules.
namespace weft::testing {

constexpr int64_t kVocabulary = 17, kContext = 8, kWidth = 16, kBatch = 2, kSteps = 100;
constexpr int64_t kImages = 4, kChannels = 2, kSize = 8, kClasses = 3;

inline nn::GPTConfig gpt() {
  return {.vocabulary = kVocabulary,
          .context = kContext,
          .layers = 2,
          .heads = 4,
          .width = kWidth,
          .activation = nn::Activation::gelu};
}
inline nn::LlamaConfig llama() {
  return {.vocabulary = kVocabulary,
          .context = kContext,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .width = kWidth,
          .hidden = 24};
}
inline nn::ResNetConfig resnet() {
  return {.channels = kChannels, .classes = kClasses, .widths = {4, 6, 8}, .blocks = 1};
}

inline std::vector<double> pytorch(const std::string& name) {
  std::ifstream file(WEFT_SOURCE_DIR "/conformance/data/training.json");
  return nlohmann::json::parse(file).at(name).get<std::vector<double>>();
}

inline Tensor tensor_of(const std::vector<double>& values, std::span<const int64_t> shape, DType dtype) {
  return Tensor::of(std::span<const double>(values), shape, dtype);
}

/// n numbers from +-0.5.
inline std::vector<double> noise(uint64_t seed, int64_t n) {
  std::vector<double> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(unit(random_word(seed, static_cast<uint64_t>(i))) - 0.5);
  return out;
}

/// Parameters even from +-0.25, around 1 for the scale of a norm; states as they begin.
inline Tensor first_weight(const nn::Field& f) {
  const int64_t n = element_count(std::span<const int64_t>(f.shape));
  if (!f.trained)
    return tensor_of(std::vector<double>(static_cast<size_t>(n), f.initial.scale), f.shape, f.dtype);
  uint64_t seed = 0;
  for (const char c : f.name) seed = seed * 31 + static_cast<unsigned char>(c);
  const double middle = f.name.find("norm") != f.name.npos && f.name.ends_with("weight") ? 1 : 0;
  auto values = noise(seed, n);
  for (double& v : values) v = middle + v / 2;
  return tensor_of(values, f.shape, f.dtype);
}

/// After token t comes 3 t + 1.
inline nn::Example token_batch(uint64_t step) {
  std::vector<int64_t> tokens, targets;
  for (uint64_t row = 0; row < kBatch; ++row) {
    auto t = static_cast<int64_t>(random_word(step, row) % kVocabulary);
    for (int64_t i = 0; i < kContext; ++i) {
      tokens.push_back(t);
      t = (3 * t + 1) % kVocabulary;
      targets.push_back(t);
    }
  }
  const int64_t shape[] = {kBatch, kContext};
  return {Tensor::of(std::span<const int64_t>(tokens), shape, DType::i32),
          Tensor::of(std::span<const int64_t>(targets), shape, DType::i32)};
}

/// Noise over stripes that lie, stripes that stand, or a chess board.
inline nn::Example image_batch(uint64_t step, DType dtype) {
  auto pixels = noise(1000 + step, kImages * kChannels * kSize * kSize);
  std::vector<int64_t> labels;
  for (uint64_t i = 0; i < kImages; ++i)
    labels.push_back(static_cast<int64_t>(random_word(step, i) % kClasses));
  for (size_t at = 0; at < pixels.size(); ++at) {
    const size_t row = at / kSize % 2, column = at % 2, pattern[] = {row, column, row ^ column};
    pixels[at] += static_cast<double>(pattern[labels[at / (kChannels * kSize * kSize)]]);
  }
  const int64_t rows[] = {kImages}, shape[] = {kImages, kChannels, kSize, kSize};
  return {tensor_of(pixels, shape, dtype), Tensor::of(std::span<const int64_t>(labels), rows, DType::i32)};
}

}  // namespace weft::testing
