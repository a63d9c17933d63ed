#pragma once
#include <cmath>

#include "weft/ops.h"
#include "weft/trace.h"

// The language model of the first thread, at toy size: embedding, context 16, two equal-shaped hidden layers
// with dropout, cross-entropy, AdamW. Equal shapes on purpose: a cache that confuses the layers shows.
namespace weft::testing {

struct SmallModel {
  static constexpr int64_t kVocabulary = 13, kWidth = 4, kContext = 16, kHidden = kWidth * kContext;

  struct Parameter {
    Tensor value, mean, square, mean_weight, square_weight;
  };
  std::vector<Parameter> parameters;
  Tensor random;

  explicit SmallModel(uint64_t seed = 1) {
    add("embedding", {kVocabulary, kWidth}, seed + 1);
    add("hidden1.weight", {kHidden, kHidden}, seed + 2);
    add("hidden1.bias", {kHidden}, seed + 3);
    add("hidden2.weight", {kHidden, kHidden}, seed + 4);
    add("hidden2.bias", {kHidden}, seed + 5);
    add("out.weight", {kHidden, kVocabulary}, seed + 6);
    random = Tensor::of({double(seed), 0}, {2}, DType::u64).named("random");
  }

  static std::vector<double> noise(size_t n, uint64_t seed) {
    std::vector<double> out;
    uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;
    for (size_t i = 0; i < n; ++i) {
      x ^= x << 13, x ^= x >> 7, x ^= x << 17;
      out.push_back(static_cast<double>(x >> 11) * 0x1p-53 - 0.5);
    }
    return out;
  }

  Tensor hidden(const Tensor& x, size_t at, const char* name) {
    const Scope scope(name);
    return dropout(relu(matmul(x, parameters[at].value) + parameters[at + 1].value), random, 0.1);
  }

  Tensor loss(const Tensor& tokens, const Tensor& targets) {
    const auto e = gather(parameters[0].value, tokens, 0, 0);  // [batch, context, width]
    auto h = reshape(e, {tokens.dim(0), Dim(kHidden)});
    h = hidden(h, 1, "hidden1");
    h = hidden(h, 3, "hidden2");
    return cross_entropy(matmul(h, parameters[5].value), targets);
  }

  /// tokens [batch, context], targets [batch], rate []: forward, backward and update; returns the loss.
  Tensor step(const Tensor& tokens, const Tensor& targets, const Tensor& rate) {
    const Tensor l = loss(tokens, targets);
    l.backward();
    const NoGrad no_grad;
    for (auto& p : parameters) {
      adamw_step(p.value, p.value.grad(), p.mean, p.square, rate, p.mean_weight, p.square_weight);
      p.value.clear_grad();
    }
    return l.detach();
  }

  TracedFunction function() {
    return [this](const std::vector<Tensor>& in) {
      const auto tokens = reshape(in[0], {in[1].dim(0), Dim(kContext)});
      return std::vector<Tensor>{step(tokens, in[1], in[2]).named("loss")};
    };
  }
  static std::vector<InputSpec> inputs() {
    const Dim batch = Dim::symbol("batch", 1, 64);
    return {{"tokens", {DType::i64, {batch * Dim(kContext)}}},
            {"targets", {DType::i64, {batch}}},
            {"rate", {DType::f32, {}}}};
  }
  /// The inputs of step `t`: tokens [batch*context], targets [batch], rate.
  static std::vector<Tensor> batch(int64_t t, int64_t n) {
    std::vector<int64_t> tokens, targets;
    for (int64_t i = 0; i < n * kContext; ++i) tokens.push_back((i * i + 3 * t + i / 5) % kVocabulary);
    for (int64_t i = 0; i < n; ++i) targets.push_back((7 * i + t) % kVocabulary);
    const int64_t flat[] = {n * kContext}, rows[] = {n};
    return {Tensor::of(std::span<const int64_t>(tokens), flat, DType::i64),
            Tensor::of(std::span<const int64_t>(targets), rows, DType::i64), Tensor::scalar(0.01)};
  }

 private:
  void add(const char* name, std::initializer_list<int64_t> shape, uint64_t seed) {
    const std::vector<int64_t> s(shape);
    auto values = noise(static_cast<size_t>(element_count(std::span<const int64_t>(s))), seed);
    for (auto& v : values) v *= 2 / std::sqrt(static_cast<double>(s[0]));
    const std::vector<double> zeros(values.size(), 0.0);
    const auto state = [&](std::span<const double> v, std::span<const int64_t> of, const char* suffix) {
      return Tensor::of(v, of, DType::f32).named(std::string(name) + suffix);
    };
    const std::span<const double> one(zeros.data(), 1);
    parameters.push_back({state(values, s, ""), state(zeros, s, ".mean"), state(zeros, s, ".square"),
                          state(one, {}, ".mean_weight"), state(one, {}, ".square_weight")});
    parameters.back().value.requires_grad(true);
  }
};

}  // namespace weft::testing
