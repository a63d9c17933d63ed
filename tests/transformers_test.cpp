#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "formats/json.h"
#include "formats/safetensors.h"
#include "test_backends.h"
#include "training_rig.h"
#include "weft/checkpoint.h"
#include "weft/jit.h"
#include "weft/ops.h"
#include "weft/pretrained.h"

// GPT and Llama: as they begin (tests/training_test.cpp trains them); and read from Hugging Face folders, as
// transformers computes with them (scripts/hf_oracle).
namespace weft::transformers_test {
namespace {

using namespace testing;  // NOLINT: the small models that are trained

struct Trained {
  std::vector<double> losses;
  ArenaUse arena;
};
template <class M, class Config>
Trained trained(Config config, bool recompute, bool compiled) {
  config.layers = 4, config.recompute = recompute;
  M model(config);
  nn::build(model);
  nn::set_training(model, true);
  nn::AdamW optimizer(nn::parameters(model));
  const auto step = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{nn::train_step(model, optimizer, {in[0], in[1]}, in[2])};
  };
  Trained run;
  std::optional<Compiled> program;
  for (uint64_t i = 0; i < 4; ++i) {
    const auto b = token_batch(i);
    const std::vector<Tensor> in{b.input, b.target, Tensor::scalar(5e-3)};
    if (compiled && !program)
      program = compile(step, {{"input", in[0].type()}, {"target", in[1].type()}, {"rate", in[2].type()}});
    run.losses.push_back((program ? (*program)(in) : step(in))[0].item());
  }
  if (program) run.arena = program->arena();
  return run;
}

// Blocks that run again draw the same dropout masks: the same losses to the bit, eagerly and compiled, with
// less memory.
template <class M, class Config>
void expect_recomputed(const Config& config) {
  const auto kept = trained<M>(config, false, false).losses;
  EXPECT_EQ(trained<M>(config, true, false).losses, kept);
  const Trained plain = trained<M>(config, false, true), again = trained<M>(config, true, true);
  EXPECT_EQ(again.losses, plain.losses);
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_NEAR(plain.losses[i], kept[i], 1e-5);
  EXPECT_LT(again.arena.bytes, plain.arena.bytes * 9 / 10);
}
TEST(TransformersRecompute, LossesAreTheSameAndMemoryIsLess) {
  set_default_backend("native");
  auto dropping = gpt();
  dropping.dropout = 0.2;
  expect_recomputed<nn::GPT>(dropping);
  expect_recomputed<nn::Llama>(llama());
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
  const auto r = token_batch(0);
  const NoGrad off;
  EXPECT_NEAR(nn::token_loss(model(r.input), r.target).item(), std::log(kVocabulary),
              0.1);  // knows nothing
}

TEST(TransformersBuilt, SayWhatIsWrong) {
  nn::GPT model(gpt());
  const char* unbuilt = "has no elements yet: call nn::build(model), or load the model, before using it";
  EXPECT_EQ(error_of([&] { (void)model(token_batch(0).input); }),
            std::string("invalid argument: Embedding.weight ") + unbuilt);
  EXPECT_EQ(error_of([&] { (void)nn::parameters(model); }),
            std::string("invalid argument: tokens.weight ") + unbuilt);
  nn::build(model);
  EXPECT_EQ(error_of([&] { (void)model(reshape(token_batch(0).input, {1, 16})); }),
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

// What config.json says when one field of it is changed.
const struct {
  const char *kind, *field, *value, *words;
} kRefused[] = {
    {"gpt2", "model_type", "\"bert\"",
     "unsupported: CONFIG: field 'model_type' is \"bert\"; supported are gpt2"},
    {"gpt2", "model_type", "null", "corrupt: CONFIG: field 'model_type' is missing"},
    {"gpt2", "n_layer", "null", "corrupt: CONFIG: field 'n_layer' is missing"},
    {"gpt2", "n_layer", "100000", "field 'n_layer' is 100000, wanted 1 to 4096"},
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
    {"llama3", "rope_scaling", R"({"rope_type":"linear","type":"llama3","factor":2})",
     "rope_scaling: field 'type' is \"llama3\"; 'rope_type' is \"linear\"; remove the one that is wrong"},
    {"llama3", "rope_scaling", R"({"rope_type":"linear","factor":2,"beta_fast":1})",
     "rope_scaling: field 'beta_fast' is 1; it is not known what it means"},
    {"llama3", "rope_parameters", R"({"rope_type":"linear","factor":2,"rope_theta":100})",
     "field 'rope_scaling' is {\"factor\":4.0,"},
    {"qwen2", "rope_parameters", R"({"rope_type":"default","rope_theta":100})",
     "field 'rope_theta' is 1000000.0; beside it, the parameters of RoPE say 100; remove the one that is "
     "wrong"},
    {"llama3", "tie_word_embeddings", "true",
     "tensor 'lm_head.weight' differs from 'model.embed_tokens.weight'; set tie_word_embeddings to false"},
    {"llama3", "logit_scale", "2", "unsupported: CONFIG: field 'logit_scale' is 2; it is not known what it"},
    {"gpt2", "n_ctx", "64", "field 'n_ctx' is 64; n_positions must be the same"},
    {"gpt2", "tie_word_embeddings", "false", "is false; supported is only true"},
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
    {"qwen3", "auto_map", R"({"AutoModel":"own.py"})",
     "field 'auto_map' is {\"AutoModel\":\"own.py\"}; it is"},
};
TEST_F(Pretrained, RefusesConfigurationsThatItDoesNotKnow) {
  for (const auto& c : kRefused) {
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

// Whatever a configuration class of transformers writes at its defaults: only the weights are missed.
TEST_F(Pretrained, KnowsEveryFieldOfTransformers) {
  fs::create_directory(copy_);
  int files = 0;
  const json releases = read_json(std::string(kFolders) + "configs.json");
  for (const auto& [release, kinds] : releases.items())
    for (const auto& [kind, config] : kinds.items()) {
      std::ofstream(copy_ / "config.json") << config;
      const std::string got = error_of([&] { nn::load_pretrained(copy_); });
      EXPECT_NE(got.find("can't read '" + (copy_ / "model.safetensors").string()), std::string::npos)
          << kind << " of " << release << ": " << got;
      EXPECT_EQ(error_of([&] { nn::load_generation(copy_); }), "no error") << kind << " of " << release;
      ++files;
    }
  EXPECT_EQ(files, 8);
}

TEST_F(Pretrained, ReadsHowTextIsChosen) {
  const fs::path path = copy_of("qwen2") / "generation_config.json";
  const auto with = [&](const char* text) {
    std::ofstream(path) << text;
    return nn::load_generation(copy_);
  };
  EXPECT_FALSE(nn::load_generation(copy_).temperature.has_value());
  EXPECT_EQ(with(R"({"do_sample":false,"temperature":0.7})").temperature, 0);
  EXPECT_EQ(with(R"({"do_sample":true})").top_k, 50);  // the default of transformers
  const auto g = with(R"({"do_sample":true,"temperature":0.6,"top_k":20,"top_p":0.9,"min_p":0.1,
      "repetition_penalty":1.05,"max_new_tokens":9,"max_length":99,"eos_token_id":[5,6],"pad_token_id":0,
      "bos_token_id":1,"suppress_tokens":[7],"stop_strings":"x",
      "cache_implementation":"static","transformers_version":"4.37.0"})");
  EXPECT_EQ(std::tuple(g.temperature, g.top_k, g.top_p, g.min_p, g.repetition_penalty),
            std::tuple(0.6, 20, 0.9, 0.1, 1.05));
  EXPECT_EQ(
      std::tuple(g.max_new_tokens, g.max_length, g.ends, g.never, g.stops),
      std::tuple(9, 99, std::vector<int32_t>{5, 6}, std::vector<int32_t>{7}, std::vector<std::string>{"x"}));
  for (const auto& [text, words] :
       {std::pair(R"({"no_repeat_ngram_size":3})", "field 'no_repeat_ngram_size' is 3; supported is only 0"),
        {R"({"num_beams":4})", "field 'num_beams' is 4; supported is only 1"},
        {R"({"bias":4})", "generation_config.json: field 'bias' is 4; it is not known what it means"},
        {R"({"top_k":2.5})", "field 'top_k' is 2.5, wanted 0 to"},
        {R"({"top_p":2})", "field 'top_p' is 2, wanted a number from 0 to 1"},
        {R"({"eos_token_id":-1})", "field 'eos_token_id' is -1, wanted tokens"},
        {R"({"stop_strings":[""]})", "wanted texts that are not empty"}})
    EXPECT_NE(error_of([&] { with(text); }).find(words), std::string::npos) << words;
  // Older releases kept these fields in config.json.
  fs::remove(path);
  json config = read_json(copy_ / "config.json");
  config["repetition_penalty"] = 1.2;
  std::ofstream(copy_ / "config.json") << config;
  EXPECT_EQ(nn::load_generation(copy_).repetition_penalty, 1.2);
  EXPECT_EQ(error_of([&] { nn::load_pretrained(copy_); }), "no error");
}

// A stored head that is the embedding is no other head.
TEST_F(Pretrained, TakesATiedHeadThatIsTheEmbedding) {
  const std::string path = copy_of("qwen2") / "model.safetensors";
  const auto file = value_or_raise(formats::read_safetensors(path));
  auto entries = file.tensors;
  entries.push_back(*file.find("model.embed_tokens.weight"));
  entries.back().name = "lm_head.weight";
  raise_if(formats::write_safetensors(path, entries, {}));
  EXPECT_EQ(error_of([&] { nn::load_pretrained(copy_); }), "no error");
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
  const auto& want = dynamic_cast<nn::Llama&>(*old).config();
  EXPECT_EQ(dynamic_cast<nn::Llama&>(*now).config(), want);
  // The base beside it counts too, and so do both forms that say the same.
  config["rope_theta"] = config["rope_parameters"]["rope_theta"];
  config["rope_parameters"].erase("rope_theta");
  config["rope_scaling"] = config["rope_parameters"];
  std::ofstream(path) << config;
  EXPECT_EQ(dynamic_cast<nn::Llama&>(*nn::load_pretrained(copy_)).config(), want);
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
  EXPECT_NE(loads().find("index.json: holds no JSON object: it is array"), std::string::npos);
  std::ofstream(copy_ / "config.json") << R"({"model_type":"llama","vocab_size":96,"vocab_size":99})";
  EXPECT_NE(loads().find("config.json: the name \"vocab_size\" appears twice"), std::string::npos) << loads();
  std::ofstream(copy_ / "config.json") << "{";
  EXPECT_NE(loads().find("config.json: holds no JSON object"), std::string::npos);
  std::ofstream(copy_ / "config.json") << "{\"model_type\":" << std::string(100'000, '[');
  EXPECT_NE(loads().find("more than 100 lists and objects deep"), std::string::npos) << loads();
  const std::string no_name(300, 'x');
  EXPECT_FALSE(nn::has_checkpoint(no_name));
  EXPECT_NE(error_of([&] { nn::load_pretrained(no_name); }).find("File name too long"), std::string::npos);
}

TEST_F(Pretrained, AnIndexSaysWhereEachTensorIs) {
  const std::string path = copy_of("llama3") / "model.safetensors.index.json";
  const auto loads = [&] { return error_of([&] { nn::load_pretrained(copy_); }); };
  const auto index = value_or_raise(formats::read_json_object(path));
  const auto with = [&](const std::function<void(nlohmann::json & map)>& change) {
    auto changed = index;
    change(changed["weight_map"]);
    std::ofstream(path) << changed.dump();
    return loads();
  };
  EXPECT_EQ(with([](auto&) {}), "no error");
  EXPECT_NE(with([](auto& map) {
              map["zzz"] = "model-00001-of-00002.safetensors";
            }).find("weight_map: 'zzz' is not in model-00001-of-00002.safetensors"),
            std::string::npos);
  EXPECT_NE(
      with([](auto& map) { map.erase("lm_head.weight"); }).find("weight_map has no 'lm_head.weight', but"),
      std::string::npos);
  EXPECT_NE(with([](auto& map) {
              std::string& at = map["lm_head.weight"].template get_ref<std::string&>();
              at[10] = at[10] == '1' ? '2' : '1';
            }).find("weight_map: 'lm_head.weight' is not in"),
            std::string::npos);
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
}  // namespace weft::transformers_test
