#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "run_command.h"
#include "test_backends.h"

// `weft compile` and `weft embed` as users run them, against what PyTorch makes of the same texts
// (scripts/lib/sentences.py): a small encoder, and MiniLM-L6-v2 where WEFT_MINILM names a folder with it.
namespace weft::embed_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Vector = std::vector<double>;

const fs::path kSmall = WEFT_SOURCE_DIR "/conformance/data/sentences";

json read_json(const fs::path& path) { return json::parse(std::ifstream(path)); }

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// The numbers of the other vectors, the most alike first.
std::vector<size_t> ranks(const std::vector<Vector>& all, size_t i) {
  std::vector<size_t> order;
  for (size_t k = 0; k < all.size(); ++k)
    if (k != i) order.push_back(k + 1);
  std::ranges::stable_sort(order, std::ranges::greater(), [&](size_t k) { return dot(all[i], all[k - 1]); });
  return order;
}

/// A copy of a folder with the program that `weft compile` makes of it.
class Encoder {
 public:
  explicit Encoder(const fs::path& from) {
    fs::remove_all(folder_);
    fs::copy(from, folder_, fs::copy_options::recursive);
    const auto made = weft_program(fmt::format("compile {} --weights {} --out {}", at("model_ir.json"),
                                               at("model.safetensors"), at("model.weft")));
    EXPECT_EQ(made.status, 0) << made.text;
  }
  ~Encoder() { fs::remove_all(folder_); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  /// What `weft embed --json` prints of texts in a file, a line each.
  Outcome embed(const std::vector<std::string>& texts, const std::string& more) const {
    std::string quoted;
    for (const auto& text : texts) quoted += fmt::format(" \"{}\"", text);
    return weft_program(fmt::format("embed {} --json --nearest 99 {} --{}", at("model.weft"), more, quoted));
  }

 private:
  fs::path folder_ = fs::temp_directory_path() / fmt::format("weft_embed_{}", ::getpid());
};

std::vector<json> objects_in(const std::string& output) {
  std::vector<json> out;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with('{')) out.push_back(json::parse(line));
  return out;
}

// Of vectors that are normalized, of which f32 keeps seven digits.
void expect_like(const json& answers, const std::string& pooling, const Outcome& run) {
  ASSERT_EQ(run.status, 0) << run.text;
  const auto got = objects_in(run.text);
  const auto wanted = answers[pooling].get<std::vector<Vector>>();
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(got[i]["text"].dump().substr(0, 60));
    const auto v = got[i]["vector"].get<Vector>();
    ASSERT_EQ(v.size(), wanted[i].size());
    EXPECT_EQ(got[i]["tokens"], answers["tokens"][i]);
    EXPECT_GE(dot(v, wanted[i]) / std::sqrt(dot(v, v) * dot(wanted[i], wanted[i])), 0.9999999);
    for (size_t k = 0; k < v.size(); ++k) EXPECT_NEAR(v[k], wanted[i][k], 2e-6);
    std::vector<size_t> nearest;
    for (const auto& n : got[i]["nearest"]) nearest.push_back(n["text"]);
    EXPECT_EQ(nearest, ranks(wanted, i));
  }
}

// ---- whole encoders
class Embedding : public ::testing::TestWithParam<std::string> {};

TEST_P(Embedding, SaysWhatPyTorchSays) {
  const Encoder encoder(GetParam());
  const json answers = read_json(encoder.at("answers.json"));
  const auto texts = answers["texts"].get<std::vector<std::string>>();
  for (const auto& backend : testing::backends({"reference", "native", "openmp", "opencl"})) {
    SCOPED_TRACE(backend);
    expect_like(answers, "mean", encoder.embed(texts, "--batch 3 --backend " + backend));
  }
}

std::vector<std::string> folders() {
  std::vector<std::string> out = {kSmall.string()};
  if (const char* real = std::getenv("WEFT_MINILM")) out.emplace_back(real);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Folders, Embedding, ::testing::ValuesIn(folders()),
                         [](const auto& info) { return fs::path(info.param).filename().string(); });

// ---- what a folder says
TEST(EmbedCommand, PoolsAsTheFolderSays) {
  const Encoder encoder(kSmall);
  const json answers = read_json(encoder.at("answers.json"));
  const auto texts = answers["texts"].get<std::vector<std::string>>();
  for (const auto& [pooling, mode] : {std::pair("first", "cls_token"), {"greatest", "max_tokens"}}) {
    SCOPED_TRACE(pooling);
    std::ofstream(encoder.at("1_Pooling/config.json")) << json{{fmt::format("pooling_mode_{}", mode), true}};
    expect_like(answers, pooling, encoder.embed(texts, ""));
  }
  std::ofstream(encoder.at("1_Pooling/config.json")) << R"({"pooling_mode_lasttoken": true})";
  auto run = encoder.embed(texts, "");
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.text.find("1_Pooling/config.json.pooling_mode_lasttoken: this pooling is not supported"),
            std::string::npos)
      << run.text;
  json modules = read_json(encoder.at("modules.json"));
  modules[1]["type"] = "sentence_transformers.models.Dense";
  std::ofstream(encoder.at("modules.json")) << modules;
  run = encoder.embed(texts, "");
  EXPECT_NE(run.text.find("modules.json.modules[1].type: module 'sentence_transformers.models.Dense'"),
            std::string::npos)
      << run.text;
}
TEST(EmbedCommand, VectorsAreNormalizedOnlyWhereTheFolderSaysSo) {
  const Encoder encoder(kSmall);
  json modules = read_json(encoder.at("modules.json"));
  modules.erase(2);
  std::ofstream(encoder.at("modules.json")) << modules;
  const json answers = read_json(encoder.at("answers.json"));
  const auto got = objects_in(encoder.embed({answers["texts"][0]}, "").text);
  ASSERT_EQ(got.size(), 1u);
  const auto v = got[0]["vector"].get<Vector>(), wanted = answers["mean"][0].get<Vector>();
  const double length = std::sqrt(dot(v, v));
  EXPECT_GT(std::abs(length - 1), 0.1);
  for (size_t k = 0; k < v.size(); ++k) EXPECT_NEAR(v[k] / length, wanted[k], 2e-6);
}
// The folder's length is left out, so the tokenizer's counts.
TEST(EmbedCommand, LongTextsAreCutAndThatIsSaid) {
  const Encoder encoder(kSmall);
  fs::remove(encoder.at("sentence_bert_config.json"));
  const auto run = encoder.embed({"a man is playing again and again", "a man"}, "");
  const auto got = objects_in(run.text);
  ASSERT_EQ(got.size(), 2u) << run.text;
  EXPECT_EQ(got[0]["tokens"], 8);
  EXPECT_EQ(got[0]["cut"], true);
  EXPECT_EQ(got[1]["cut"], false);
  EXPECT_NE(run.text.find("text 1 is longer than the model takes: cut to 8 tokens"), std::string::npos);
}
TEST(EmbedCommand, ProgramsOfAnotherKindAreRefused) {
  const Encoder encoder(kSmall);
  const std::string mlp = WEFT_SOURCE_DIR "/conformance/data/import/mlp/";
  ASSERT_EQ(weft_program(fmt::format("compile {0}model_ir.json --weights {0}model.safetensors --out {1}", mlp,
                                     encoder.at("model.weft")))
                .status,
            0);
  const auto run = encoder.embed({"a"}, "");
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.text.find("it has an input 'x'; texts want input_ids and attention_mask"), std::string::npos)
      << run.text;
  EXPECT_EQ(weft_program("embed " + encoder.at("model.weft")).status, 2);
}

}  // namespace
}  // namespace weft::embed_test
