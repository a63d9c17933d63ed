#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "formats/tokenizer_json.h"
#include "io/tokenizer/pattern.h"
#include "test_backends.h"
#include "weft/text.h"
#include "weft/tokenizer.h"

namespace weft::io::tokenizer_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Ids = std::vector<int32_t>;

std::string read(const fs::path& path) {
  std::ostringstream all;
  all << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(all).str();
}

/// The answers of PyPI's tokenizers; scripts/token_oracle says what is in them.
fs::path oracle() {
  const char* other = std::getenv("WEFT_TOKENS");
  return other ? fs::path(other) : fs::path(WEFT_SOURCE_DIR "/conformance/data/tokens");
}

std::string readable(const std::string& s) {
  return json(s).dump(-1, ' ', true, json::error_handler_t::replace);
}

std::string said(const Tokenizer& t, const std::string& line) {
  const Ids plain = t.encode(line, false), ids = t.encode(line);
  std::string all = fmt::format("{}|{}", fmt::join(plain, " "), fmt::join(ids, " "));
  return fmt::format("{}|{}|{}", all, t.decode(ids), t.decode(ids, false));
}

TEST(Tokenizers, AnswerAsTheOracle) {
  const json cases = json::parse(read(oracle() / "cases.json"));
  auto lines = cases["lines"].get<std::vector<std::string>>();
  for (const auto& bad : cases["malformed"]) {
    std::string bytes;
    for (const char32_t c : from_utf8(bad.get<std::string>())) bytes += static_cast<char>(c);
    lines.push_back(bytes);
  }
  ASSERT_GE(cases["kinds"].size(), 14u);
  for (const auto& [kind, hashes] : cases["kinds"].items()) {
    const auto tokenizer = Tokenizer::load((oracle() / (kind + ".json")).string());
    ASSERT_EQ(hashes.size(), lines.size());
    size_t wrong = 0, compared = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (hashes[i].is_null()) continue;
      ++compared;
      const std::string ours = said(tokenizer, lines[i]);
      const auto hash = fmt::format("{:016x}", XXH3_64bits(ours.data(), ours.size()));
      if (hash != hashes[i].get<std::string>() && ++wrong <= 3)
        ADD_FAILURE() << kind << ", line " << i << ": " << readable(lines[i]) << "\n" << ours;
    }
    EXPECT_GT(compared, lines.size() * 9 / 10) << kind;
    fmt::print("[tokens] {:<14} {} lines compared, {} differ\n", kind, compared, wrong);
    EXPECT_EQ(wrong, 0u) << kind;
  }
}

using testing::error_of;

TEST(Tokenizers, BytesAndCharacters) {
  const auto bytes = Tokenizer::bytes();
  EXPECT_EQ(bytes.size(), 256);
  EXPECT_EQ(bytes.encode("A\n\u00e9"), (Ids{65, 10, 0xC3, 0xA9}));
  EXPECT_EQ(bytes.decode(bytes.encode("A\n\u00e9")), "A\n\u00e9");
  EXPECT_EQ(bytes.encode("\xff"), (Ids{0xEF, 0xBF, 0xBD}));

  // In order of code point, after what stands for all others: those that are rare, and those never seen.
  const auto characters = Tokenizer::train_characters("cabcab\u4f60q\u4f60");
  EXPECT_EQ(characters.size(), 5);
  EXPECT_EQ(characters.encode("cab\u4f60"), (Ids{3, 1, 2, 4}));
  EXPECT_EQ(characters.encode("qax"), (Ids{0, 1, 0}));
  EXPECT_EQ(characters.encode(""), Ids{});
  EXPECT_EQ(characters.decode(Ids{0, 1, 4}), "\uFFFDa\u4f60");
  EXPECT_EQ(Tokenizer::train_characters("aab", {.limit = 9, .least = 1}).size(), 3);
  EXPECT_EQ(Tokenizer::train_characters("aabbbcc", {.limit = 1}).encode("abc"), (Ids{0, 1, 0}));
}

TEST(Tokenizers, TrainingIsWhatTheTrainerOfTokenizersFinds) {
  const json cases = json::parse(read(oracle() / "cases.json"));
  std::string text;
  for (size_t i = 0; i < cases["trained_on"]; ++i) text += cases["lines"][i].get<std::string>();
  const json expected = cases["trained"];
  const auto t = Tokenizer::train_bpe(text, {.vocabulary_size = 500});
  const json ours = json::parse(t.to_json());
  EXPECT_EQ(t.size(), 500);
  EXPECT_EQ(ours["model"]["merges"], expected["merges"]);
  EXPECT_EQ(ours["model"]["vocab"], expected["vocab"]);
  EXPECT_EQ(Tokenizer::train_bpe(text, {.vocabulary_size = 500}).to_json(), t.to_json());
  EXPECT_EQ(t.decode(t.encode(text), false), text);
  EXPECT_NE(error_of([] { Tokenizer::train_bpe("a", {.vocabulary_size = 256}); }).find("no room"),
            std::string::npos);
}

TEST(Tokenizers, FoldersGoRoundWithTheirConfiguration) {
  const auto folder = fs::temp_directory_path() / fmt::format("weft_tokenizer_test_{}", ::getpid());
  fs::create_directories(folder);
  const auto t = Tokenizer::train_bpe("low lower lowest low lower",
                                      {.vocabulary_size = 262, .specials = {"<s>", "</s>"}});
  t.save((folder / "tokenizer.json").string());
  std::ofstream(folder / "tokenizer_config.json") << R"({"bos_token":{"content":"<s>"},"eos_token":"</s>",
             "chat_template":[{"name":"default","template":"{{x}}"}]})";
  const auto read_back = Tokenizer::load(folder.string());
  EXPECT_EQ(read_back.encode("lower</s>low"), t.encode("lower</s>low"));
  EXPECT_EQ(read_back.bos(), 0);
  EXPECT_EQ(read_back.eos(), 1);
  EXPECT_EQ(read_back.id("Ġlow"), t.id("Ġlow"));
  EXPECT_EQ(read_back.token(*read_back.id("Ġlow")), "Ġlow");
  EXPECT_TRUE(read_back.is_special(1));
  EXPECT_EQ(read_back.chat_template(), "{{x}}");
  EXPECT_EQ(read_back.decode(Ids{0, 1, 99999, -1}), "");
  std::ofstream(folder / "tokenizer_config.json") << R"({"bos_token":"<t>"})";
  EXPECT_NE(error_of([&] { Tokenizer::load(folder.string()); }).find("bos_token '<t>' is no token"),
            std::string::npos);
  fs::remove(folder / "tokenizer_config.json");
  std::ofstream(folder / "chat_template.jinja") << "a\xff";
  EXPECT_NE(error_of([&] { Tokenizer::load(folder.string()); }).find("chat_template.jinja: is not UTF-8"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              Tokenizer::train_bpe("a b", {.vocabulary_size = 258, .specials = {"<\xff>"}});
            }).find("special token 0 ('<\xef\xbf\xbd>') is not UTF-8"),
            std::string::npos);
  fs::remove_all(folder);
}

// Whatever the ids, the pieces are whole characters and make up what decode gives.
TEST(Tokenizers, StreamsNeverCutACharacter) {
  for (const char* kind : {"gpt2", "llama2", "mistral", "metaspace", "words_gpt2"}) {
    const auto t = Tokenizer::load((oracle() / (std::string(kind) + ".json")).string());
    Ids ids = t.encode("  \u4f60\u597d \U0001F469\u200D\U0001F467 na\u00efve  ");
    for (int32_t i = 0; i < t.size(); ++i) ids.push_back((i * 7919) % static_cast<int32_t>(t.size()));
    TokenStream stream(t);
    std::string all;
    size_t with_text = 0;
    for (const int32_t id : ids) {
      const auto piece = stream.push(id);
      bool valid = false;
      from_utf8(piece, &valid);
      ASSERT_TRUE(valid) << kind;
      with_text += !piece.empty();
      all += piece;
    }
    all += stream.finish();
    EXPECT_EQ(all, t.decode(ids)) << kind;
    EXPECT_GT(with_text, ids.size() / 3) << kind;
  }
}

TEST(Tokenizers, LongWordsTakeNoSquareOfTime) {
  const auto t =
      Tokenizer::train_bpe(std::string(4096, 'a') + std::string(4096, ' '), {.vocabulary_size = 266});
  for (const auto& text :
       {std::string(1 << 18, 'a'), std::string(1 << 18, ' ') + "x", std::string(1 << 18, '\xff')}) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_LE(t.encode(text).size(), 3u << 18);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  }
}

// How Oniguruma reads an expression; each answer is that of PyPI's tokenizers.
TEST(Tokenizers, ExpressionsMeanWhatTheyMeanToOniguruma) {
  const std::tuple<const char*, const char*, std::vector<std::string>> all[] = {
      {"a{,2}b", "aaab{,2}b", {"a", "aab", "{,2}", "b"}},
      {"a{,}b", "aab_a{,}b", {"aab_", "a{,}b"}},
      {"ab(?i)c|d", "abC_ABc_D_d_abD_abd", {"abC", "_ABc_D_d_", "abD", "_", "abd"}},
      {"(?:x(?i)y|z)q", "xYq_xZq_zq_Zq_xzq_Zq", {"xYq", "_", "xZq", "_zq_Zq_", "xzq", "_Zq"}},
      {"(x(?i)y)Z", "xYZ_xYz", {"xYZ", "_xYz"}},
      {"(?i)a|b", "ABab", {"A", "B", "a", "b"}},
      {"x|(?i)a|b", "XABab", {"X", "A", "B", "a", "b"}},
      {"(?i)c(?i)d|e", "CdE", {"Cd", "E"}},
      {"[(](?i)a", "(A)", {"(A", ")"}},
  };
  for (const auto& [expression, text, parts] : all) {
    json file = json::parse(Tokenizer::bytes().to_json());
    file["pre_tokenizer"] = {
        {"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}, {"invert", false}};
    file["model"]["ignore_merges"] = true;  // so that each part is a token
    for (const auto& part : parts) {
      const size_t id = file["model"]["vocab"].size();
      file["model"]["vocab"].emplace(part, id);
    }
    const auto t = Tokenizer::from_json(file.dump());
    std::vector<std::string> got;
    for (const int32_t id : t.encode(text)) got.push_back(t.token(id));
    EXPECT_EQ(got, parts) << expression;
  }
  const std::string zero("a\\\0b", 4);  // an escape of no letter, though every text ends in one
  EXPECT_EQ(value_or_raise(to_pcre2(zero)), zero);
}

// A text may be malformed up to where a token looks around itself.
TEST(Tokenizers, SpecialsAreFoundInMalformedText) {
  json file = json::parse(Tokenizer::train_bpe("a", {.vocabulary_size = 257, .specials = {"<m>"}}).to_json());
  for (const char* field : {"lstrip", "rstrip", "single_word"}) file["added_tokens"][0][field] = true;
  const auto t = Tokenizer::from_json(file.dump());
  using Found = std::vector<std::pair<size_t, size_t>>;
  EXPECT_EQ(t.specials_in("\x80<m>"), (Found{{1, 4}}));
  EXPECT_EQ(t.specials_in("\x80\x80 <m>\xe2\x82"), (Found{{2, 6}}));
  EXPECT_EQ(t.specials_in(" \xbf<m> \xff"), (Found{{2, 6}}));
}

TEST(Tokenizers, WhatIsNotServedNamesTheField) {
  const json good = json::parse(Tokenizer::train_bpe("a b a b", {.vocabulary_size = 258}).to_json());
  const auto split = [](const char* pattern) {
    return json{
        {"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  };
  const std::tuple<const char*, json, const char*> all[] = {
      {"/padding", {{"pad_id", -1}}, "tokenizer.json.padding.pad_id: wanted a whole number"},
      {"/truncation", 3, "tokenizer.json.truncation: wanted an object"},
      {"/truncation", {{"direction", "Left"}}, "truncation.direction: cutting at the front is not supported"},
      {"/truncation",
       {{"strategy", "OnlySecond"}, {"max_length", 8}},
       "truncation.strategy: cutting the second of two texts is not supported"},
      {"/version", "2.0", "tokenizer.json.version: wanted \"1.0\", got \"2.0\""},
      {"/surprise", 1, "tokenizer.json: field 'surprise' is not known"},
      {"/normalizer", {{"type", "Lowercase"}}, "normalizer.type: normalizer 'Lowercase' is not supported"},
      {"/normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "Nmt"}}}}}, "normalizers[0].type"},
      {"/pre_tokenizer",
       {{"type", "CharDelimiterSplit"}},
       "pre_tokenizer.type: pre-tokenizer 'CharDelimiterSplit'"},
      {"/pre_tokenizer", split("[a&&b]"), "pre_tokenizer 0: the expression '[a&&b]': an intersection"},
      {"/pre_tokenizer", split("(a"), "the expression '(a' is not understood"},
      {"/pre_tokenizer", split("a{2}+"), "a repetition of a counted repetition"},
      {"/decoder", {{"type", "CTC"}}, "decoder.type: decoder 'CTC'"},
      {"/model/type", "WordPiece", "model: field 'byte_fallback' is not known"},
      {"/post_processor", {{"type", "BertProcessing"}}, "post_processor.type"},
      {"/model/type", "Unigram", "model.type: model 'Unigram' is not supported"},
      {"/model/dropout", 0.1, "model.dropout"},
      {"/model/end_of_word_suffix", "</w>", "model.end_of_word_suffix"},
      {"/model/unk_token", "<unk>", "model.unk_token: '<unk>' is not in model.vocab"},
      {"/model/merges/0", "abc", "model.merges[0]: wanted two tokens"},
      {"/model/merges/0", {"a", "zz"}, "model.merges[0]: 'zz' is not in model.vocab"},
      {"/model/vocab/a", -1, "model.vocab['a']"},
      {"/model/vocab/a", 2, "id 2 stands for two tokens"},
      {"/added_tokens/0/id", 7, "'<|endoftext|>' has id 7, but is number 0"},
      {"/added_tokens/0/lstrip", "yes", "added_tokens[0].lstrip: wanted true or false"},
  };
  for (const auto& [where, what, words] : all) {
    json bad = good;
    bad[json::json_pointer(where)] = what;
    const auto said = error_of([&] { Tokenizer::from_json(bad.dump()); });
    EXPECT_NE(said.find(words), std::string::npos) << words << "\n" << said;
  }
}

// A decoder without steps joins tokens; no decoder puts spaces between them.
TEST(Tokenizers, ADecoderWithoutStepsIsWrittenAsOne) {
  const std::string text =
      R"({"decoder":{"type":"Sequence","decoders":[]},"model":{"vocab":{"a":0},"merges":[]}})";
  const auto file = value_or_raise(formats::parse_tokenizer(text, "a"));
  const auto again = value_or_raise(formats::parse_tokenizer(formats::write_tokenizer(file), "b"));
  EXPECT_TRUE(file.decoders.has_value() && again.decoders.has_value());
}

// Much that is done with a JSON value takes some of the stack for each list in it.
TEST(Tokenizers, TextThatIsNoTokenizerIsRefused) {
  const auto deep = [](const char* before, const char* behind) {
    std::string all = "{\"normalizer\":", back;
    for (int i = 0; i < 100'000; ++i) all += before, back += behind;
    return all + "1" + back + "}";
  };
  const std::pair<std::string, const char*> all[] = {
      {"{", "tokenizer.json: holds no JSON object: byte 2 is not as JSON wants it"},
      {"{\"a\":1e999}", "a number in it is beyond 64 bits"},
      {"[1]", "holds no JSON object: it is array"},
      {"{\"a\":\"\xff\"}", "holds no JSON object: byte 7"},
      {deep("[", "]"), "holds no JSON object: byte 114 is more than 100 lists and objects deep"},
      {deep("{\"type\":\"Sequence\",\"normalizers\":[", "]}"), "more than 100 lists and objects deep"},
  };
  for (const auto& [text, words] : all) {
    const auto said = error_of([&, &text = text] { Tokenizer::from_json(text); });
    EXPECT_NE(said.find(words), std::string::npos) << words << "\n" << said;
  }
  const std::string brackets = "\\\"" + std::string(200, '[');  // in a text they are none
  const auto t = Tokenizer::train_bpe("a b", {.vocabulary_size = 258, .specials = {brackets}});
  EXPECT_EQ(Tokenizer::from_json(t.to_json()).encode(brackets), Ids{0});
  EXPECT_NE(error_of([] {
              Tokenizer::train_bpe("a", {.vocabulary_size = 258, .specials = {"<s>", "\xff"}});
            }).find("special token 1 ('\uFFFD') is not UTF-8"),
            std::string::npos);
  EXPECT_NE(error_of([] { Tokenizer::load(std::string(300, 'x')); }).find("File name too long"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::io::tokenizer_test
