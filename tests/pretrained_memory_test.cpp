#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/safetensors.h"
#include "peak_memory.h"
#include "test_backends.h"

// The memory for generating text with a Hugging Face folder: little more than its weights.
namespace weft::pretrained_memory_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Sizes {
  int64_t vocabulary, width, hidden, layers;
};
constexpr Sizes kLarge{20000, 512, 2048, 8}, kSmall{128, 64, 64, 1};  // 44 million numbers, and hardly any

/// A Llama, its weights all of them 2^-9 or so, and a tokenizer of printable characters.
class LargeFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(folder_);
    json vocabulary;
    for (int i = 0; i < 95; ++i) vocabulary[std::string(1, static_cast<char>(32 + i))] = i;
    write("tokenizer.json", {{"version", "1.0"},
                             {"added_tokens", json::array()},
                             {"normalizer", nullptr},
                             {"pre_tokenizer", nullptr},
                             {"post_processor", nullptr},
                             {"decoder", {{"type", "Fuse"}}},
                             {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}}});
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const char* name, const json& what) const { std::ofstream(folder_ / name) << what; }

  /// Writes the model; gives the bytes of its weights.
  int64_t write_model(const Sizes& z, DType dtype) const {
    write("config.json", {{"model_type", "llama"},
                          {"vocab_size", z.vocabulary},
                          {"hidden_size", z.width},
                          {"intermediate_size", z.hidden},
                          {"num_hidden_layers", z.layers},
                          {"num_attention_heads", 8},
                          {"max_position_embeddings", 1024},
                          {"tie_word_embeddings", true}});
    std::vector<uint16_t> numbers(static_cast<size_t>(z.vocabulary * z.width) * byte_size(dtype) / 2);
    for (size_t i = 0; i < numbers.size(); ++i)  // of f32 too: each half of one is a small number
      numbers[i] = static_cast<uint16_t>(0x3b00 + i * 40503 % 251);
    std::vector<formats::TensorEntry> all;
    int64_t bytes = 0;
    const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
      int64_t n = static_cast<int64_t>(byte_size(dtype));
      for (const int64_t d : shape) n *= d;
      all.push_back(
          {"model." + name, dtype, shape, std::as_bytes(std::span(numbers)).first(static_cast<size_t>(n))});
      bytes += n;
    };
    add("embed_tokens.weight", {z.vocabulary, z.width});
    for (int64_t i = 0; i < z.layers; ++i) {
      const std::string layer = fmt::format("layers.{}.", i);
      for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
        add(layer + "self_attn." + name + ".weight", {z.width, z.width});
      add(layer + "mlp.gate_proj.weight", {z.hidden, z.width}),
          add(layer + "mlp.up_proj.weight", {z.hidden, z.width});
      add(layer + "mlp.down_proj.weight", {z.width, z.hidden});
      add(layer + "input_layernorm.weight", {z.width}),
          add(layer + "post_attention_layernorm.weight", {z.width});
    }
    add("norm.weight", {z.width});
    raise_if(formats::write_safetensors((folder_ / "model.safetensors").string(), all, {}));
    return bytes;
  }
  /// The most memory that the program had while it made a little text with the model.
  int64_t peak(const char* dtype) const {
    return testing::peak_memory({"generate", "--backend", "native", "--hf", folder_.string(), "--dtype",
                                 dtype, "--prompt", "abcdefghijklmnopqrst", "--length", "4"},
                                (folder_ / "out").string());
  }

  const fs::path folder_ = fs::temp_directory_path() / fmt::format("weft_large_{}", ::getpid());
};

TEST_F(LargeFolder, GenerationTakesLittleMoreThanTheWeights) {
  write_model(kSmall, DType::f32);
  const int64_t program = peak("f32");
  const auto expect_little_more = [&](int64_t weights, DType stored, DType dtype) {
    const int64_t most = peak(name(dtype));
    EXPECT_LE(most - program, weights * 115 / 100) << name(stored) << " as " << name(dtype);
    std::printf("[memory] %s as %s: %.0f MB of weights, %.0f MB at most, %.0f MB with hardly any weights\n",
                name(stored), name(dtype), static_cast<double>(weights) * 1e-6,
                static_cast<double>(most) * 1e-6, static_cast<double>(program) * 1e-6);
  };
  for (const DType dtype : {DType::f32, DType::bf16})
    expect_little_more(write_model(kLarge, dtype), dtype, dtype);
  expect_little_more(2 * write_model(kLarge, DType::bf16), DType::bf16,
                     DType::f32);  // widened piece by piece
}

}  // namespace
}  // namespace weft::pretrained_memory_test
