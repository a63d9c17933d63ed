#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "run_command.h"
#include "test_backends.h"
#include "weft/tokenizer.h"
#include "weft/weft.h"

// Decoders of transformers as program files (scripts/lib/decoders.py): `weft generate FILE` says what they
// say there.
namespace weft::program_text_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class ProgramTexts : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    fs::create_directories(folder_);
    const std::string from = WEFT_SOURCE_DIR "/conformance/data/decoders/" + GetParam();
    answers_ = json::parse(std::ifstream(from + "/answers.json"));
    const auto letters = answers_["letters"].get<std::string>();
    io::Tokenizer::train_characters(letters + letters).save(at("tokenizer.json"));
    const auto made =
        weft_program(fmt::format("compile {0}/model_ir.json --weights {0}/model.safetensors "
                                 "--out {1}",
                                 from, at("model.weft")));
    ASSERT_EQ(made.status, 0) << made.text;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  Outcome generate(const std::string& more) const {
    return weft_program("generate " + at("model.weft") + " --temperature 0 " + more);
  }
  std::string prompt() const { return answers_["prompt"]; }
  std::string wanted() const { return answers_["text"]; }

  json answers_;
  fs::path folder_ = fs::temp_directory_path() / fmt::format("weft_program_text_{}", ::getpid());
};

TEST_P(ProgramTexts, GreedyIsThatOfTransformers) {
  for (const auto& backend : testing::backends({"reference", "native", "openmp", "opencl"})) {
    SCOPED_TRACE(backend);
    const auto run = generate("--prompt " + prompt() + " --length 128 --json --backend " + backend);
    ASSERT_EQ(run.status, 0) << run.text;
    const json got = json::parse(run.text);
    EXPECT_EQ(got["text"], answers_["text"]);
    EXPECT_EQ(got["output_tokens"], 128);
    EXPECT_EQ(got["finish"], "length");
  }
}
// With every op a call of its own: 128 runs on one cache.
TEST_P(ProgramTexts, UnfusedIsThatOfTransformers) {
  const std::string from = WEFT_SOURCE_DIR "/conformance/data/decoders/" + GetParam();
  const auto made = weft_program(
      fmt::format("compile {0}/model_ir.json --weights {0}/model.safetensors --no-fuse --out {1}", from,
                  at("model.weft")));
  ASSERT_EQ(made.status, 0) << made.text;
  const auto run = generate("--prompt " + prompt() + " --length 128 --json --backend native");
  ASSERT_EQ(run.status, 0) << run.text;
  EXPECT_EQ(json::parse(run.text)["text"], answers_["text"]);
}
// The cache of the text before is written over.
TEST_P(ProgramTexts, EveryTextBeginsAnew) {
  const auto run = generate("--length 20 --prompt AAAAAAAABBBBBBBB --prompt " + prompt() + " --json");
  ASSERT_EQ(run.status, 0) << run.text;
  std::istringstream lines(run.text);
  std::string line;
  std::getline(lines, line), std::getline(lines, line);
  const json got = json::parse(line);
  EXPECT_EQ(got["output_tokens"], 20);
  EXPECT_TRUE(wanted().starts_with(got["text"].get<std::string>())) << line;
}
TEST_P(ProgramTexts, EndsWhereTheCacheIsFullAndAtStopStrings) {
  auto run = generate("--prompt " + prompt() + " --length 500 --json");
  ASSERT_EQ(run.status, 0) << run.text;
  EXPECT_EQ(json::parse(run.text)["finish"], "full");
  EXPECT_EQ(json::parse(run.text)["output_tokens"], 160 - 4 + 1);
  const std::string stop = wanted().substr(7, 3);
  run = generate("--prompt " + prompt() + " --length 128 --stop '" + stop + "'");
  EXPECT_EQ(run.text, prompt() + wanted().substr(0, wanted().find(stop)) + "\n");
}
// ---- two programs, one cache

/// A program file in a session of the C interface.
struct Opened {
  ::weft_program* program = nullptr;
  weft_session* session = nullptr;
  Opened(const std::string& file, const std::string& backend, const weft_session* states_of = nullptr) {
    const weft_options options = {sizeof(weft_options), backend.c_str(), WEFT_FALLBACK_FORBID, states_of};
    EXPECT_EQ(weft_program_load(file.c_str(), &program), WEFT_SUCCESS) << weft_error_text();
    EXPECT_EQ(weft_session_open(program, &options, &session), WEFT_SUCCESS) << weft_error_text();
  }
  ~Opened() { weft_session_free(session), weft_program_free(program); }

  /// The best token behind these, which stand at `first` and after it.
  int64_t next(const std::vector<int64_t>& ids, int64_t first) const {
    std::vector<int64_t> places(ids.size());
    std::iota(places.begin(), places.end(), first);
    const int64_t dims[] = {1, static_cast<int64_t>(ids.size())};
    weft_array scores = {};
    EXPECT_EQ(weft_session_bind_input(session, 0, dims, 2, ids.data(), 8 * ids.size()), WEFT_SUCCESS);
    EXPECT_EQ(weft_session_bind_input(session, 1, dims + 1, 1, places.data(), 8 * ids.size()), WEFT_SUCCESS);
    EXPECT_EQ(weft_session_run(session), WEFT_SUCCESS) << weft_error_text();
    EXPECT_EQ(weft_session_output(session, 0, &scores), WEFT_SUCCESS) << weft_error_text();
    const auto n = static_cast<size_t>(scores.dims[scores.rank - 1]);
    const auto* last = static_cast<const float*>(scores.data) + (scores.bytes / sizeof(float) - n);
    return std::max_element(last, last + n) - last;
  }
};

// The model as two programs: one for a prompt of any length, and one for a single token, exported as such.
TEST_P(ProgramTexts, APrefillAndADecodeProgramWorkInOneCache) {
  const std::string from = WEFT_SOURCE_DIR "/conformance/data/decoders/" + GetParam();
  json ir = json::parse(std::ifstream(from + "/model_ir.json"));
  ASSERT_EQ(ir["symbols"].size(), 1u);
  const std::string symbol = json(ir["symbols"].begin().key()).dump();
  ir.erase("symbols");
  std::string one = ir.dump();
  for (size_t at = 0; (at = one.find(symbol, at)) != one.npos;) one.replace(at, symbol.size(), "1");
  std::ofstream(at("one.json")) << one;
  const auto made = weft_program(fmt::format("compile {} --weights {}/model.safetensors --out {}",
                                             at("one.json"), from, at("one.weft")));
  ASSERT_EQ(made.status, 0) << made.text;

  const auto tokenizer = io::Tokenizer::load(at("tokenizer.json"));
  const auto prompt_ids = tokenizer.encode(prompt());
  for (const auto& backend : testing::backends({"native", "openmp"})) {
    SCOPED_TRACE(backend);
    const Opened prefill(at("model.weft"), backend), decode(at("one.weft"), backend, prefill.session);
    EXPECT_EQ(weft_program_symbol_count(decode.program), 0u);
    std::vector<int64_t> all(prompt_ids.begin(), prompt_ids.end());
    std::vector<int32_t> text;
    all.push_back(prefill.next(all, 0));
    while (text.push_back(static_cast<int32_t>(all.back())), text.size() < 128)
      all.push_back(decode.next({all.back()}, static_cast<int64_t>(all.size()) - 1));
    EXPECT_EQ(tokenizer.decode(text), wanted());
  }
}
INSTANTIATE_TEST_SUITE_P(Kinds, ProgramTexts, ::testing::Values("llama", "qwen2"),
                         [](const auto& info) { return info.param; });

TEST(ProgramTextRefusals, ProgramsOfAnotherKind) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("weft_other_program_{}", ::getpid());
  fs::create_directories(folder);
  const std::string mlp = WEFT_SOURCE_DIR "/conformance/data/import/mlp/",
                    file = (folder / "m.weft").string();
  io::Tokenizer::train_characters("aabb").save((folder / "tokenizer.json").string());
  ASSERT_EQ(weft_program(
                fmt::format("compile {0}model_ir.json --weights {0}model.safetensors --out {1}", mlp, file))
                .status,
            0);
  const auto run = weft_program("generate " + file + " --prompt a");
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.text.find("it has other inputs or no output; text wants the inputs input_ids"),
            std::string::npos)
      << run.text;
  EXPECT_EQ(weft_program("generate " + file + " --hf x").status, 2);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace weft::program_text_test
