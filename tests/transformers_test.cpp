#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "weft/models.h"
#include "weft/ops.h"
#include "weft/random.h"

// GPT and Llama: trained as PyTorch trains them (scripts/train_oracle), with weights and batches that both
// sides draw by the same rule.
namespace weft {
namespace {

constexpr int64_t kVocabulary = 17, kContext = 8, kWidth = 16, kBatch = 2, kSteps = 100;
constexpr double kRate = 5e-3;
constexpr nn::AdamWConfig kAdamW = {
    .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.01, .clip = 0.5, .clip_epsilon = 1e-6};

nn::GPTConfig gpt() {
  return {.vocabulary = kVocabulary,
          .context = kContext,
          .layers = 2,
          .heads = 4,
          .width = kWidth,
          .activation = nn::Activation::gelu};
}
nn::LlamaConfig llama() {
  return {.vocabulary = kVocabulary,
          .context = kContext,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .width = kWidth,
          .hidden = 24};
}

std::vector<double> pytorch(const std::string& name) {
  std::ifstream file(WEFT_SOURCE_DIR "/conformance/data/training.json");
  return nlohmann::json::parse(file).at(name).get<std::vector<double>>();
}

// Even from +-0.25, around 1 for the scale of a norm.
Tensor weight(const nn::Field& f) {
  uint64_t seed = 0;
  for (const char c : f.name) seed = seed * 31 + static_cast<unsigned char>(c);
  const double middle = f.name.find("norm") != f.name.npos && f.name.ends_with("weight") ? 1 : 0;
  std::vector<double> values(static_cast<size_t>(element_count(std::span<const int64_t>(f.shape))));
  for (size_t i = 0; i < values.size(); ++i) values[i] = middle + (unit(random_word(seed, i)) - 0.5) / 2;
  return Tensor::of(std::span<const double>(values), f.shape, f.dtype);
}

struct Rows {
  Tensor tokens, targets;
};
// After token t comes 3 t + 1.
Rows batch(uint64_t step) {
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

// The largest difference from PyTorch's losses, over all steps.
template <class M>
double difference(M model, DType dtype, const std::vector<double>& want,
                  const nn::AdamWConfig& config = kAdamW) {
  nn::replace(model, weight, dtype);
  nn::AdamW optimizer(nn::parameters(model), config);
  const Tensor rate = Tensor::scalar(kRate, dtype);
  double most = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const Rows r = batch(i);
    most = std::max(most,
                    std::abs(nn::train_step(model, optimizer, r.tokens, r.targets, rate).item() - want[i]));
  }
  return most;
}

class Transformers : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { set_default_backend(GetParam()); }
};

TEST_P(Transformers, TrainAsInPyTorch) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const auto want = [&](const char* model) { return pytorch(std::string(model) + " " + name(dtype)); };
    ASSERT_EQ(want("GPT").size(), size_t{kSteps});
    ASSERT_LT(want("GPT").back(), 0.1);  // it learns
    const double bound = dtype == DType::f64 ? 1e-10 : 2e-5;
    const double of_gpt = difference(nn::GPT(gpt()), dtype, want("GPT"));
    const double of_llama = difference(nn::Llama(llama()), dtype, want("Llama"));
    EXPECT_LE(of_gpt, bound) << name(dtype);
    EXPECT_LE(of_llama, bound) << name(dtype);
    std::printf("[training] %s %s: GPT within %.1e of PyTorch, Llama within %.1e\n", GetParam(), name(dtype),
                of_gpt, of_llama);
  }
}
INSTANTIATE_TEST_SUITE_P(On, Transformers, testing::Values("reference", "native"),
                         [](const auto& i) { return std::string(i.param); });

// What the bound is worth: each is a mistake that trains just as well.
TEST(TransformersFaults, AreSeen) {
  set_default_backend("native");
  const auto want = pytorch("GPT f64");
  auto tanh = gpt(), epsilon = gpt();
  tanh.activation = nn::Activation::gelu_tanh;
  epsilon.epsilon = 1e-6;
  nn::AdamWConfig clip = kAdamW;
  clip.clip_epsilon = 0;
  EXPECT_GT(difference(nn::GPT(tanh), DType::f64, want), 1e-10);
  EXPECT_GT(difference(nn::GPT(epsilon), DType::f64, want), 1e-10);
  EXPECT_GT(difference(nn::GPT(gpt()), DType::f64, want, clip), 1e-10);
}

TEST(TransformersBuilt, BeginAsThePapersSay) {
  nn::GPT model(gpt());
  nn::build(model, {.seed = 3});
  // Token and position rows; of a block: 2 norms, 4 projections, 2 layers; the last norm.
  const int64_t block =
      2 * 2 * kWidth + 4 * (kWidth * kWidth + kWidth) + 2 * 4 * kWidth * kWidth + 5 * kWidth;
  EXPECT_EQ(nn::parameter_count(model), (kVocabulary + kContext) * kWidth + 2 * block + 2 * kWidth);
  for (const Tensor& p : nn::parameters(model)) {
    const auto values = p.to_vector<double>();
    double sum = 0, squares = 0;
    for (const double v : values) sum += v, squares += v * v;
    const auto n = static_cast<double>(values.size());
    if (p.name().ends_with("bias") || p.rank() == 1) {
      EXPECT_EQ(squares, p.name().ends_with("bias") ? 0 : n) << p.name();
      continue;
    }
    const bool residual = p.name().ends_with("out.weight") || p.name().ends_with("down.weight");
    const double deviation = residual ? 0.01 : 0.02;  // 0.02 / sqrt(2 * 2 layers)
    EXPECT_NEAR(std::sqrt(squares / n) / deviation, 1, 4 / std::sqrt(2 * n)) << p.name();
    EXPECT_NEAR(sum / n, 0, 4 * deviation / std::sqrt(n)) << p.name();
  }
  const Rows r = batch(0);
  const NoGrad off;
  EXPECT_NEAR(nn::token_loss(model(r.tokens), r.targets).item(), std::log(kVocabulary),
              0.1);  // knows nothing
}

TEST(TransformersBuilt, SayWhatIsWrong) {
  const auto message = [](const auto& f) -> std::string {
    try {
      f();
      return "";
    } catch (const Error& e) {
      return e.what();
    }
  };
  nn::GPT model(gpt());
  const char* unbuilt = "has no elements yet: call nn::build(model), or load the model, before using it";
  EXPECT_EQ(message([&] { (void)model(batch(0).tokens); }),
            std::string("invalid argument: Embedding.weight ") + unbuilt);
  EXPECT_EQ(message([&] { (void)nn::parameters(model); }),
            std::string("invalid argument: tokens.weight ") + unbuilt);
  nn::build(model);
  EXPECT_EQ(message([&] { (void)model(reshape(batch(0).tokens, {1, 16})); }),
            "invalid argument: GPT: tokens must be [batch, up to 8], got i32[1, 16]");
  auto odd = gpt();
  odd.heads = 5;
  EXPECT_EQ(message([&] { nn::GPT{odd}; }),
            "invalid argument: Attention: 5 heads don't divide a width of 16");
  auto groups = llama();
  groups.kv_heads = 3;
  EXPECT_NE(message([&] { nn::Llama{groups}; }).find("heads a multiple of kv_heads, got 4 and 3"),
            std::string::npos);
  groups = llama(), groups.layers = 0;
  EXPECT_NE(message([&] { nn::Llama{groups}; }).find("sizes must be at least 1"), std::string::npos);
}

}  // namespace
}  // namespace weft
