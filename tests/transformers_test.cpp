#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "formats/safetensors.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ops.h"
#include "weft/pretrained.h"
#include "weft/random.h"

// GPT and Llama: trained as PyTorch trains them (scripts/train_oracle), with weights and batches that both
// sides draw by the same rule; and read from Hugging Face folders, as transformers computes with them
// (scripts/hf_oracle).
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

class Transformers : public ::testing::TestWithParam<const char*> {
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
INSTANTIATE_TEST_SUITE_P(On, Transformers, ::testing::Values("reference", "native"),
                         [](const auto& i) { return std::string(i.param); });

// Blocks that run again draw the same dropout masks: the same losses and weights to the bit, eagerly and
// compiled, with less memory.
struct Trained {
  std::vector<double> losses;
  ArenaUse arena;
};
Trained run_of(nn::GPTConfig config, bool recompute, bool compiled) {
  config.dropout = 0.2, config.layers = 4, config.recompute = recompute;
  nn::GPT model(config);
  nn::build(model);
  nn::set_training(model, true);
  nn::AdamW optimizer(nn::parameters(model));
  const auto step = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{nn::train_step(model, optimizer, in[0], in[1], in[2])};
  };
  Trained run;
  std::optional<Compiled> program;
  const Tensor rate = Tensor::scalar(kRate);
  for (uint64_t i = 0; i < 4; ++i) {
    const Rows r = batch(i);
    if (compiled && !program)
      program =
          compile(step, {{"tokens", r.tokens.type()}, {"targets", r.targets.type()}, {"rate", rate.type()}});
    const std::vector<Tensor> in{r.tokens, r.targets, rate};
    run.losses.push_back((program ? (*program)(in) : step(in))[0].item());
  }
  if (program) run.arena = program->arena();
  return run;
}
TEST(TransformersRecompute, LossesAreTheSameAndMemoryIsLess) {
  set_default_backend("native");
  const auto kept = run_of(gpt(), false, false).losses;
  EXPECT_EQ(run_of(gpt(), true, false).losses, kept);
  const Trained plain = run_of(gpt(), false, true), again = run_of(gpt(), true, true);
  EXPECT_EQ(again.losses, plain.losses);
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_NEAR(plain.losses[i], kept[i], 1e-5);
  EXPECT_LT(again.arena.bytes, plain.arena.bytes * 9 / 10);
}

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

using testing::error_of;

TEST(TransformersBuilt, SayWhatIsWrong) {
  nn::GPT model(gpt());
  const char* unbuilt = "has no elements yet: call nn::build(model), or load the model, before using it";
  EXPECT_EQ(error_of([&] { (void)model(batch(0).tokens); }),
            std::string("invalid argument: Embedding.weight ") + unbuilt);
  EXPECT_EQ(error_of([&] { (void)nn::parameters(model); }),
            std::string("invalid argument: tokens.weight ") + unbuilt);
  nn::build(model);
  EXPECT_EQ(error_of([&] { (void)model(reshape(batch(0).tokens, {1, 16})); }),
            "invalid argument: GPT: tokens must be [batch, up to 8], got i32[1, 16]");
  auto odd = gpt();
  odd.heads = 5;
  EXPECT_EQ(error_of([&] { nn::GPT{odd}; }),
            "invalid argument: Attention: 5 heads don't divide a width of 16");
  auto groups = llama();
  groups.kv_heads = 3;
  EXPECT_NE(error_of([&] { nn::Llama{groups}; }).find("heads a multiple of kv_heads, got 4 and 3"),
            std::string::npos);
  groups = llama(), groups.layers = 0;
  EXPECT_NE(error_of([&] { nn::Llama{groups}; }).find("sizes must be at least 1"), std::string::npos);
}

namespace fs = std::filesystem;
using nlohmann::json;
constexpr const char* kFolders = WEFT_SOURCE_DIR "/conformance/data/hf/";

json read_json(const fs::path& path) {
  std::ifstream file(path);
  return json::parse(file);
}

Tensor row(const std::vector<int32_t>& tokens) {
  const int64_t shape[] = {1, static_cast<int64_t>(tokens.size())};
  return Tensor::of(std::span<const int32_t>(tokens), shape, DType::i32);
}

class Pretrained : public ::testing::Test {
 protected:
  void SetUp() override {
    set_default_backend("native");
    fs::remove_all(copy_);
  }
  void TearDown() override { fs::remove_all(copy_); }

  /// A copy of a folder, to be spoilt.
  fs::path copy_of(const char* kind) {
    fs::remove_all(copy_);
    fs::copy(std::string(kFolders) + kind, copy_);
    return copy_;
  }
  const fs::path copy_ = fs::temp_directory_path() / fmt::format("weft_pretrained_{}", ::getpid());
};

TEST_F(Pretrained, ScoresAndGreedyTextAreThoseOfTransformers) {
  const NoGrad off;
  const json answers = read_json(std::string(kFolders) + "answers.json");
  for (const char* kind : {"gpt2", "llama3", "qwen2", "qwen3"}) {
    const auto model = nn::load_pretrained(std::string(kFolders) + kind);
    auto tokens = answers.at(kind).at("prompt").get<std::vector<int32_t>>();
    std::vector<double> want;
    for (const auto& scores : answers.at(kind).at("scores"))
      for (const double v : scores) want.push_back(v);
    const auto got = (*model)(row(tokens)).to_vector<double>();
    ASSERT_EQ(got.size(), want.size()) << kind;
    double largest = 0, apart = 0;
    for (size_t i = 0; i < want.size(); ++i)
      largest = std::max(largest, std::abs(want[i])), apart = std::max(apart, std::abs(got[i] - want[i]));
    EXPECT_LE(apart, 1e-4 * largest) << kind;

    const auto text = answers.at(kind).at("tokens").get<std::vector<int32_t>>();
    ASSERT_EQ(text.size(), 128u);
    for (size_t i = 0; i < text.size(); ++i) {
      const Tensor scores = (*model)(row(tokens));
      const auto next = argmax(slice(scores, 1, scores.dim(1) - Dim(1), scores.dim(1))).item();
      ASSERT_EQ(next, text[i]) << kind << ", token " << i;
      tokens.push_back(text[i]);
    }
    std::printf("[pretrained] %s: scores within %.1e of the largest, 128 tokens equal\n", kind,
                apart / largest);
  }
}

TEST_F(Pretrained, WeightsAreConverted) {
  const auto narrow = nn::load_pretrained(std::string(kFolders) + "qwen2", DType::bf16),
             wide = nn::load_pretrained(std::string(kFolders) + "qwen2", DType::f64);
  const auto a = nn::parameters(*narrow), b = nn::parameters(*wide);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].dtype(), DType::bf16);
    EXPECT_EQ(b[i].dtype(), DType::f64);
    EXPECT_EQ(a[i].to_vector<double>(), b[i].to_vector<double>()) << a[i].name();
  }
  EXPECT_EQ(wide->vocabulary(), 96);
  EXPECT_EQ(wide->context(), 160);
  EXPECT_NE(error_of([] { nn::load_pretrained("x", DType::i32); }).find("dtype must be"), std::string::npos);
}

TEST_F(Pretrained, RefusesConfigurationsThatItDoesNotKnow) {
  const struct {
    const char *kind, *field, *value, *words;
  } all[] = {
      {"gpt2", "model_type", "\"bert\"",
       "unsupported: CONFIG: field 'model_type' is \"bert\"; supported are gpt2"},
      {"gpt2", "model_type", "null", "corrupt: CONFIG: field 'model_type' is missing"},
      {"gpt2", "n_layer", "null", "corrupt: CONFIG: field 'n_layer' is missing"},
      {"gpt2", "n_layer", "100000", "field 'n_layer' is 100000; at most 4096"},
      {"gpt2", "n_embd", "-1", "field 'n_embd' is -1, wanted 1 to"},
      {"gpt2", "n_embd", "48",
       "tensor 'transformer.wte.weight' is f32[96, 32], config.json wants floats [96, 48]"},
      {"gpt2", "activation_function", "\"mish\"", "field 'activation_function' is \"mish\"; supported are"},
      {"gpt2", "scale_attn_by_inverse_layer_idx", "true", "is true; supported is only false"},
      {"llama3", "num_attention_heads", "5",
       "invalid argument: CONFIG: Attention: wants heads a multiple of kv_heads"},
      {"llama3", "head_dim", "7", "CONFIG: Llama: head_dim must be even"},
      {"llama3", "attention_bias", "true", "field 'attention_bias' is true; supported is only false"},
      {"llama3", "hidden_act", "3", "field 'hidden_act' is 3, wanted text"},
      {"llama3", "rope_theta", "0", "field 'rope_theta' is 0, wanted a number above 0"},
      {"llama3", "tie_word_embeddings", "\"no\"",
       "field 'tie_word_embeddings' is \"no\", wanted true or false"},
      {"llama3", "rope_scaling", R"({"rope_type":"yarn"})", "rope_scaling: field 'rope_type' is \"yarn\""},
      {"llama3", "rope_scaling", R"({"type":"linear"})", "rope_scaling: field 'factor' is missing"},
      {"llama3", "rope_scaling", "4", "field 'rope_scaling' is 4, wanted an object"},
      {"qwen2", "use_sliding_window", "true", "field 'use_sliding_window' is true"},
      {"qwen2", "num_hidden_layers", "3", "tensor 'model.layers.2.input_layernorm.weight' is missing"},
      {"qwen2", "num_hidden_layers", "1",
       "tensor 'model.layers.1.input_layernorm.weight' has no place in the qwen2"},
      {"qwen2", "model_type", "\"llama\"",
       "tensor 'model.layers.0.self_attn.k_proj.bias' has no place in the llama"},
      {"qwen2", "tie_word_embeddings", "false", "tensor 'lm_head.weight' is missing"},
      {"qwen3", "layer_types", R"(["sliding_attention"])", "field 'layer_types' is [\"sliding_attention\"]"},
      {"qwen3", "head_dim", "null", "config.json wants floats [512, 32]"},
      {"qwen3", "quantization_config", "{}", "field 'quantization_config' is {}; only plain floats"},
  };
  for (const auto& c : all) {
    const fs::path path = copy_of(c.kind) / "config.json";
    json config = read_json(path);
    config[c.field] = json::parse(c.value);
    std::ofstream(path) << config;
    std::string words = c.words;
    if (const auto at = words.find("CONFIG"); at != words.npos) words.replace(at, 6, path.string());
    const std::string got = error_of([&] { nn::load_pretrained(copy_); });
    EXPECT_NE(got.find(words), std::string::npos) << words << "\n" << got;
  }
}

// transformers 5 keeps base and scaling of the angles in one field.
TEST_F(Pretrained, ReadsBothFormsOfRope) {
  const fs::path path = copy_of("llama3") / "config.json";
  json config = read_json(path);
  config["rope_parameters"] = config["rope_scaling"];
  config["rope_parameters"]["rope_theta"] = config["rope_theta"];
  config.erase("rope_scaling"), config.erase("rope_theta");
  std::ofstream(path) << config;
  const auto old = nn::load_pretrained(std::string(kFolders) + "llama3"), now = nn::load_pretrained(copy_);
  EXPECT_EQ(dynamic_cast<nn::Llama&>(*now).config(), dynamic_cast<nn::Llama&>(*old).config());
}

TEST_F(Pretrained, RefusesWeightsThatDoNotFit) {
  const auto loads = [&] { return error_of([&] { nn::load_pretrained(copy_); }); };
  EXPECT_NE(loads().find("config.json"), std::string::npos);
  fs::remove(copy_of("qwen3") / "model.safetensors");
  EXPECT_NE(loads().find("model.safetensors"), std::string::npos);
  fs::remove(copy_of("llama3") / "model-00002-of-00002.safetensors");
  EXPECT_NE(loads().find("model-00002-of-00002.safetensors"), std::string::npos);
  fs::copy(copy_ / "model-00001-of-00002.safetensors", copy_ / "model-00002-of-00002.safetensors");
  EXPECT_NE(loads().find("is in another shard too"), std::string::npos) << loads();
  std::ofstream(copy_ / "model.safetensors.index.json") << R"({"weight_map":{"a":"../model.safetensors"}})";
  EXPECT_NE(loads().find("'a' is \"../model.safetensors\", wanted the name of a file beside it"),
            std::string::npos);
  std::ofstream(copy_ / "model.safetensors.index.json") << "[]";
  EXPECT_NE(loads().find("field 'weight_map' is missing"), std::string::npos);
  std::ofstream(copy_ / "config.json") << "{";
  EXPECT_NE(loads().find("config.json: it holds no JSON object"), std::string::npos);
}

// What older releases of transformers saved beside the parameters, and a base model's names.
TEST_F(Pretrained, ReadsOlderFiles) {
  const std::string path = copy_of("gpt2") / "model.safetensors";
  const auto file = value_or_raise(formats::read_safetensors(path));
  auto entries = file.tensors;
  for (auto& e : entries) e.name = e.name.substr(std::string("transformer.").size());
  entries.push_back({"h.0.attn.bias", DType::f32, {1, 1, 1, 1}, entries[0].bytes.first(4)});
  raise_if(formats::write_safetensors(path, entries, {}));
  const auto old = nn::load_pretrained(std::string(kFolders) + "gpt2"), now = nn::load_pretrained(copy_);
  const auto a = nn::parameters(*old), b = nn::parameters(*now);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].to_bytes(), b[i].to_bytes()) << a[i].name();
}

}  // namespace
}  // namespace weft
