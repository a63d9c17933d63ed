#include "weft/trainer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "test_backends.h"
#include "weft/ops.h"

// A training run gives the same results whatever happens to it: saved and continued, or interrupted by a
// failed step.
namespace weft::trainer_test {
namespace {

namespace fs = std::filesystem;

class TrainingRuns : public ::testing::Test {
 protected:
  void SetUp() override { set_default_backend("reference"); }
  void TearDown() override { fs::remove_all(folder_); }
  static std::string some_text() {
    std::string text;
    for (int i = 0; i < 300; ++i) text += fmt::format("line {} of a text that is long enough\n", i);
    return text;
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_ = fs::temp_directory_path() / fmt::format("weft_trainer_{}", ::getpid());
  io::Tokenizer tokenizer_ = io::Tokenizer::train_characters(some_text());
  io::TokenData data_{{tokenizer_.encode(some_text()), tokenizer_}, 16, 9};
};

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

nn::GPTConfig gpt(int64_t vocabulary, bool recompute = false) {
  return {.vocabulary = vocabulary,
          .context = 16,
          .layers = 1,
          .heads = 2,
          .width = 16,
          .dropout = 0.2,
          .recompute = recompute};
}
// Everything that a Llama may be asked for is off its default.
nn::LlamaConfig llama(int64_t vocabulary) {
  return {.vocabulary = vocabulary,
          .context = 16,
          .layers = 1,
          .heads = 4,
          .kv_heads = 2,
          .width = 16,
          .hidden = 24,
          .head_dim = 6,
          .rope_base = 500,
          .rope_scaling = {.kind = nn::RopeScaling::Kind::llama3,
                           .factor = 2,
                           .low_frequency = 1.5,
                           .high_frequency = 3,
                           .trained_context = 8},
          .epsilon = 1e-4,
          .qkv_bias = true,
          .norm_heads = true,
          .tied_embedding = true,
          .activation = nn::Activation::gelu};
}

// A run that is saved and continued gives exactly the results of an uninterrupted one: eager and compiled,
// with dropout, accumulation and masters of halves.
TEST_F(TrainingRuns, AreTakenUpExactly) {
  const auto go = [&](nn::Checkpoint& run, const std::string& folder, int64_t steps) {
    nn::Trainer trainer(run, data_);
    std::vector<double> losses;
    for (int64_t i = 0; i < steps; ++i) losses.push_back(trainer.step());
    trainer.sync();
    nn::save_checkpoint(folder, run);
    return losses;
  };
  const int64_t n = tokenizer_.size();
  const struct {
    nn::LanguageModelConfig model;
    DType dtype;
    nn::OptimizerKind optimizer;
    bool compile;
  } all[] = {{gpt(n), DType::f32, nn::OptimizerKind::adamw, false},
             {gpt(n, true), DType::f32, nn::OptimizerKind::adamw, true},
             {gpt(n), DType::bf16, nn::OptimizerKind::adamw, false},
             {gpt(n, true), DType::bf16, nn::OptimizerKind::adamw, true},
             {llama(n + 2), DType::f64, nn::OptimizerKind::sgd, false}};
  for (const auto& [model, dtype, optimizer, compile] : all) {
    SCOPED_TRACE(fmt::format("compile {} {}", compile, name(dtype)));
    const nn::RunInfo info{.settings = {.model = model,
                                        .dtype = dtype,
                                        .optimizer = optimizer,
                                        .schedule = {.rate = 1e-2, .warmup = 2},
                                        .steps = 6,
                                        .batch = 2,
                                        .accumulate = 2,
                                        .seed = 9,
                                        .compile = compile},
                           .tokenizer = tokenizer_};
    auto whole = nn::begin_run(info), first = nn::begin_run(info);
    const auto losses = go(whole, at("whole"), 6);
    EXPECT_EQ(go(first, at("cut"), 3), std::vector<double>(losses.begin(), losses.begin() + 3));
    auto second = nn::load_checkpoint(at("cut"));
    EXPECT_EQ(second.info.step, 3);
    nn::save_checkpoint(at("again"), second);
    EXPECT_EQ(slurp(at("again/model.safetensors")), slurp(at("cut/model.safetensors")));
    EXPECT_EQ(go(second, at("cut"), 3), std::vector<double>(losses.begin() + 3, losses.end()));
    EXPECT_EQ(slurp(at("cut/model.safetensors")), slurp(at("whole/model.safetensors")));
  }
}

// After a loss that is not finite, the run is in its previous state, and continues with smaller steps.
TEST_F(TrainingRuns, ALostStepChangesNothing) {
  const nn::RunInfo info{
      .settings = {.model = gpt(tokenizer_.size()), .schedule = {.rate = 1e-2}, .steps = 6, .batch = 2},
      .tokenizer = tokenizer_};
  auto whole = nn::begin_run(info), spoilt = nn::begin_run(info);
  nn::Trainer straight(whole, data_), again(spoilt, data_);
  EXPECT_EQ(straight.step(), again.step());
  const Tensor weight = nn::parameters(*spoilt.model)[0];
  const auto good = weight.to_bytes();
  const auto put = [&](const Tensor& value) {
    const NoGrad off;
    assign(weight, value);
  };
  const std::vector<double> nans(good.size() / 4, std::nan(""));
  put(Tensor::of(std::span(nans), weight.sizes(), DType::f32));
  const auto said = testing::error_of([&] { again.step(); });
  EXPECT_NE(said.find("the loss is NaN at step 1: the first NaN is in"), std::string::npos) << said;
  put(Tensor::from_bytes(good, weight.sizes(), DType::f32));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(straight.step(), again.step()) << i;
}

}  // namespace
}  // namespace weft::trainer_test
