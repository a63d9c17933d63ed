#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "host_memory.h"
#include "seam/registry.h"
#include "test_backends.h"
#include "weft/generate.h"
#include "weft/ops.h"
#include "weft/pretrained.h"

// Text generation: with the cache it equals that of transformers (scripts/hf_oracle), prompt by prompt and
// batched; and a token allocates nothing.

namespace weft::generate_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nn::Decoder, nn::Finish, nn::Generation, nn::GenerateOptions;
using testing::error_of;
using Ids = std::vector<int32_t>;

constexpr const char* kFolders = WEFT_SOURCE_DIR "/conformance/data/hf/";
constexpr const char* kKinds[] = {"gpt2", "llama3", "qwen2", "qwen3"};

const json& answers() {
  static const json all = [] {
    std::ifstream file(std::string(kFolders) + "answers.json");
    return json::parse(file);
  }();
  return all;
}
std::unique_ptr<nn::LanguageModel> load(const std::string& kind) {
  return nn::load_pretrained(kFolders + kind);
}

// One id for each printable character, 32 behind its code: as many as the models of conformance/data/hf have.
json tokenizer_json() {
  json vocabulary;
  for (int i = 0; i < 95; ++i) vocabulary[std::string(1, static_cast<char>(32 + i))] = i;
  json special = {{"id", 95},        {"content", "<|end|>"}, {"single_word", false}, {"lstrip", false},
                  {"rstrip", false}, {"normalized", false},  {"special", true}};
  return {{"version", "1.0"},
          {"added_tokens", {special}},
          {"normalizer", nullptr},
          {"pre_tokenizer", nullptr},
          {"post_processor", nullptr},
          {"decoder", {{"type", "Fuse"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}}};
}
const io::Tokenizer& tokenizer() {
  static const io::Tokenizer t = io::Tokenizer::from_json(tokenizer_json().dump());
  return t;
}

struct Made {
  std::vector<Ids> tokens;
  std::vector<std::string> texts;
  std::vector<Finish> finish;
};
Made generate(Decoder& decoder, const std::vector<Ids>& prompts, const GenerateOptions& options) {
  Generation g(decoder, tokenizer(), prompts, options);
  Made made{{}, std::vector<std::string>(prompts.size()), {}};
  while (g.step())
    for (size_t i = 0; i < prompts.size(); ++i) made.texts[i] += g.text(static_cast<int64_t>(i));
  for (int64_t i = 0; i < static_cast<int64_t>(prompts.size()); ++i) {
    made.tokens.emplace_back(g.tokens(i).begin(), g.tokens(i).end());
    made.finish.push_back(g.finish(i));
  }
  return made;
}
GenerateOptions greedy(int64_t length) {
  GenerateOptions o;
  o.length = length;
  o.sampling.temperature = 0;
  return o;
}

class Generate : public ::testing::Test {
 protected:
  void SetUp() override { set_default_backend("native"); }
};

TEST_F(Generate, GreedyTextIsThatOfTransformers) {
  for (const char* backend : {"native", "reference"}) {
    set_default_backend(backend);
    for (const char* kind : kKinds) {
      const auto model = load(kind);
      const auto prompt = answers().at(kind).at("prompt").get<Ids>();
      Decoder decoder(*model);
      const auto made = generate(decoder, {prompt}, greedy(128));
      EXPECT_EQ(made.tokens[0], answers().at(kind).at("tokens").get<Ids>()) << kind << " on " << backend;
      EXPECT_EQ(made.finish[0], Finish::length);
    }
  }
}

// The fields of a folder's generation_config.json choose the tokens that they choose in transformers.
TEST_F(Generate, TokensByAFoldersOptionsAreThoseOfTransformers) {
  for (const char* kind : kKinds) {
    const auto folder = std::filesystem::temp_directory_path() / fmt::format("weft_options_{}", ::getpid());
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "config.json") << "{}";
    std::ofstream(folder / "generation_config.json") << answers().at(kind).at("generation_config");
    const auto wants = nn::load_generation(folder);
    std::filesystem::remove_all(folder);
    const auto want = answers().at(kind).at("tokens_with_config").get<Ids>();
    GenerateOptions o = greedy(static_cast<int64_t>(want.size()));
    o.sampling.temperature = wants.temperature.value();
    o.sampling.repetition_penalty = wants.repetition_penalty.value();
    o.sampling.never = wants.never;
    EXPECT_EQ(wants.max_new_tokens, 48);
    Decoder decoder(*load(kind));
    EXPECT_EQ(generate(decoder, {answers().at(kind).at("prompt").get<Ids>()}, o).tokens[0], want) << kind;
    auto plain = answers().at(kind).at("tokens").get<Ids>();
    plain.resize(want.size());
    EXPECT_NE(want, plain) << kind << ": the options change nothing";
  }
}

// In whatever portions tokens are read, the scores are those of the model reading all of them at once.
TEST_F(Generate, ReadingInPartsChangesNothing) {
  const NoGrad off;
  for (const char* kind : kKinds) {
    const auto model = load(kind);
    auto tokens = answers().at(kind).at("tokens").get<Ids>();
    tokens.resize(40);
    Decoder decoder(*model, {.capacity = 40});
    const int64_t shape[] = {1, 40};
    const auto want =
        (*model)(Tensor::of(std::span<const int32_t>(tokens), shape, DType::i32)).to_vector<float>();
    const auto expect_scores = [&](size_t read) {
      const float* right = want.data() + (read - 1) * 96;
      float apart = 0, largest = 0;
      for (size_t i = 0; i < 96; ++i)
        apart = std::max(apart, std::abs(decoder.scores(0)[i] - right[i])),
        largest = std::max(largest, std::abs(right[i]));
      EXPECT_LE(apart, 1e-5f * largest) << kind << " after " << read;
    };
    const auto read = [&](size_t from, size_t n) {
      const std::span<const int32_t> part[] = {std::span(tokens).subspan(from, n)};
      decoder.read(part);
      expect_scores(from + n);
    };
    read(0, 7), read(7, 1), read(8, 2), read(10, 23), read(33, 6), read(39, 1);
    decoder.rewind(0, 12);
    read(12, 3), read(15, 1);
    EXPECT_TRUE(std::ranges::equal(decoder.tokens(0), std::span(tokens).first(16)));
  }
}

// Sequences of other lengths in the batch, some of which end earlier, don't change a text.
TEST_F(Generate, ABatchIsItsPromptsAlone) {
  for (const char* kind : {"gpt2", "llama3"}) {
    const auto model = load(kind);
    const auto tokens = answers().at(kind).at("tokens").get<Ids>();
    const std::vector<Ids> prompts = {{tokens[0]}, Ids(tokens.begin(), tokens.begin() + 31), {5, 6, 7}};
    for (const double temperature : {0.0, 0.9}) {
      GenerateOptions o = greedy(60);
      o.sampling = {.repetition_penalty = 1.1, .temperature = temperature, .top_k = 40, .seed = 11};
      o.stops = {"a", "Q"};
      o.ends = {33};
      Decoder together(*model, {.batch = 3, .capacity = 64});
      const auto batch = generate(together, prompts, o);
      for (size_t i = 0; i < prompts.size(); ++i) {
        Decoder single(*model, {.capacity = 64});
        GenerateOptions own = o;
        own.sampling.seed += i;
        const auto alone = generate(single, {prompts[i]}, own);
        EXPECT_EQ(batch.tokens[i], alone.tokens[0]) << kind << " " << i;
        EXPECT_EQ(batch.texts[i], alone.texts[0]) << kind << " " << i;
        EXPECT_EQ(batch.finish[i], alone.finish[0]) << kind << " " << i;
      }
    }
  }
}

TEST_F(Generate, TheSameSeedGivesTheSameTextOnEveryBackend) {
  GenerateOptions o;
  o.length = 40;
  o.sampling = {.temperature = 0.8, .top_k = 30, .top_p = 0.95, .min_p = 0.01, .seed = 7};
  std::vector<Ids> made;
  for (const char* backend : {"native", "reference"}) {
    set_default_backend(backend);
    const auto model = load("qwen3");
    Decoder decoder(*model);
    made.push_back(generate(decoder, {{1, 2, 3}}, o).tokens[0]);
    decoder.rewind(0, 0);
    EXPECT_EQ(generate(decoder, {{1, 2, 3}}, o).tokens[0], made.back());
    o.sampling.seed = 8;
    EXPECT_NE(generate(decoder, {{1, 2, 3}}, o).tokens[0], made.back());
    o.sampling.seed = 7;
  }
  EXPECT_EQ(made[0], made[1]);
}

TEST_F(Generate, EndsWhereItShould) {
  const auto model = load("gpt2");
  const auto prompt = answers().at("gpt2").at("prompt").get<Ids>();
  const auto tokens = answers().at("gpt2").at("tokens").get<Ids>();
  Decoder decoder(*model, {.capacity = 20});
  auto made = generate(decoder, {prompt}, greedy(1000));
  EXPECT_EQ(made.finish[0], Finish::full);
  EXPECT_EQ(made.tokens[0], Ids(tokens.begin(), tokens.begin() + 13));  // the last one needs no room
  EXPECT_EQ(made.texts[0], tokenizer().decode(made.tokens[0]));
  made = generate(decoder, {prompt}, greedy(0));
  EXPECT_EQ(made.finish[0], Finish::length);
  EXPECT_TRUE(made.tokens[0].empty());

  auto o = greedy(10);
  o.ends = {tokens[4]};
  made = generate(decoder, {prompt}, o);
  EXPECT_EQ(made.finish[0], Finish::end);
  const auto first = static_cast<size_t>(std::ranges::find(tokens, tokens[4]) - tokens.begin());
  EXPECT_EQ(made.tokens[0].size(), first + 1);
  EXPECT_EQ(made.texts[0], tokenizer().decode(std::span(made.tokens[0]).first(first)));

  o = greedy(10);
  const std::string whole = tokenizer().decode(std::span(tokens).first(10)), stop = whole.substr(3, 3);
  o.stops = {stop};
  made = generate(decoder, {prompt}, o);
  EXPECT_EQ(made.finish[0], Finish::stop);
  EXPECT_EQ(made.texts[0], whole.substr(0, whole.find(stop)));
}

// When the context is full, the newer half of the text is read as if it were all.
TEST_F(Generate, GoesOnFromTheNewerHalf) {
  const auto model = load("llama3");
  const auto prompt = answers().at("llama3").at("prompt").get<Ids>();
  Decoder decoder(*model, {.capacity = 12}), fresh(*model, {.capacity = 12});
  auto o = greedy(30);
  o.forget = true;
  const auto made = generate(decoder, {prompt}, o);
  EXPECT_EQ(made.finish[0], Finish::length);
  Generation again(decoder, tokenizer(), {&prompt, 1}, o);
  for (int i = 0; i < 4; ++i) again.step();
  EXPECT_EQ(again.forgotten(0), 0);
  again.step();
  EXPECT_EQ(again.forgotten(0), 6);  // half of 12
  Ids seen = prompt;
  for (const int32_t token : made.tokens[0]) {
    fresh.rewind(0, 0);
    const std::span<const int32_t> all = seen;
    fresh.read({&all, 1});
    const auto scores = fresh.scores(0);
    EXPECT_EQ(token, std::ranges::max_element(scores) - scores.begin());
    if (seen.size() == 12) seen.erase(seen.begin(), seen.begin() + 6);
    seen.push_back(token);
  }
}

TEST_F(Generate, ATokenAllocatesNothing) {
#if WEFT_WATCHES_HOST_MEMORY
  const seam::Device& device = *value_or_raise(seam::registry().open("native"));
  for (const char* kind : kKinds) {
    const auto model = load(kind);
    Decoder decoder(*model, {.batch = 2});
    GenerateOptions o;
    o.length = 120;
    o.sampling = {.repetition_penalty = 1.2, .temperature = 0.9, .top_k = 50, .top_p = 0.9, .min_p = 0.01};
    o.stops = {"no such text"};
    const std::vector<Ids> prompts = {{1, 2, 3}, {4}};
    Generation g(decoder, tokenizer(), prompts, o);
    ASSERT_TRUE(g.step());
    const int64_t before = testing::host_allocations();
    const uint64_t bytes = device.live_bytes();
    int steps = 0;
    while (g.step()) ++steps;
    EXPECT_EQ(testing::host_allocations() - before, 0) << kind;
    EXPECT_EQ(device.live_bytes(), bytes) << kind;
    EXPECT_EQ(steps, 119);
    const std::vector<int> probe(static_cast<size_t>(steps));
    EXPECT_GT(testing::host_allocations(), before) << probe.size();  // they are counted
  }
#else
  GTEST_SKIP() << "sanitizers have an operator new of their own";
#endif
}

TEST_F(Generate, SaysWhatIsWrong) {
  const auto model = load("gpt2");
  EXPECT_EQ(
      error_of([&] { Decoder(*model, {.capacity = 161}); }),
      "invalid argument: a cache wants a batch of at least 1 and a capacity of 1 to 160, got 1 and 161");
  EXPECT_NE(error_of([&] { Decoder(*model, {.batch = 0}); }).find("got 0 and 160"), std::string::npos);
  Decoder decoder(*model, {.capacity = 4});
  const auto starts = [&](std::vector<Ids> prompts, GenerateOptions o = {}) {
    return error_of([&] { Generation(decoder, tokenizer(), prompts, o); });
  };
  EXPECT_EQ(starts({{}}), "invalid argument: prompt 1 is empty: a text wants a token to begin with");
  EXPECT_EQ(starts({{1, 2, 3, 4, 5}}), "invalid argument: prompt 1 has 5 tokens, there is room for 4");
  EXPECT_EQ(starts({{1}, {2}}), "invalid argument: a decoder of 1 sequences got 2 prompts");
  EXPECT_EQ(starts({{1, 96}}),
            "invalid argument: sequence 0: token 96 is outside [0, 96), the model's vocabulary");
  GenerateOptions o;
  o.length = -1;
  EXPECT_EQ(starts({{1}}, o), "invalid argument: length must be 0 or more, got -1");
  o = {}, o.stops = {""};
  EXPECT_EQ(starts({{1}}, o), "invalid argument: a stop string must not be empty");
  const struct {
    io::Sampling how;
    const char* words;
  } all[] = {{{.temperature = -1}, "temperature must be 0 or more, got -1"},
             {{.temperature = std::nan("")}, "temperature must be 0 or more, got nan"},
             {{.top_k = -1}, "top_k must be 0 or more, got -1"},
             {{.top_p = 1.5}, "top_p must be in [0, 1], got 1.5"},
             {{.top_p = std::nan("")}, "top_p must be in [0, 1], got nan"},
             {{.min_p = -0.1}, "min_p must be in [0, 1], got -0.1"},
             {{.repetition_penalty = 0}, "repetition_penalty must be above 0, got 0"},
             {{.never = {-1}}, "a token that is never chosen must be 0 or more, got -1"}};
  for (const auto& c : all) {
    o = {}, o.sampling = c.how;
    EXPECT_EQ(starts({{1}}, o), std::string("invalid argument: ") + c.words);
  }
  const Ids two = {1, 2, 3};
  const std::span<const int32_t> parts[] = {two};
  decoder.rewind(0, 0), decoder.read(parts);
  EXPECT_EQ(error_of([&] { decoder.read(parts); }),
            "invalid argument: sequence 0 has 3 tokens and can't read 3 more: there is room for 4");
  EXPECT_NE(error_of([&] { decoder.rewind(0, 5); }).find("has 3 tokens, it can't go back to 5"),
            std::string::npos);
  nn::set_training(*model, true);
  EXPECT_NE(error_of([&] { Decoder d(*model); }).find("call set_training(model, false) first"),
            std::string::npos);
}

// What a decoder runs on: a program that reads and fills memory of the caller's.
TEST_F(Generate, ProgramsRunInTheCallersMemory) {
  auto program =
      compile([](const std::vector<Tensor>& in) { return std::vector{(in[0] * in[1]).named("y")}; },
              {{"x", {DType::f32, {Dim::symbol("n", 1, 8)}}}, {"by", {DType::f32, {}}}});
  const std::vector<float> x = {1, 2, 3}, by = {2};
  std::vector<float> y(3);
  const auto run = [&](std::span<const float> from, std::span<float> to) {
    const int64_t sizes[] = {static_cast<int64_t>(from.size())};
    const HostArray in[] = {{DType::f32, sizes, std::as_bytes(from)},
                            {DType::f32, {}, std::as_bytes(std::span(by))}};
    const std::span<std::byte> out[] = {std::as_writable_bytes(to)};
    program.run(in, out);
  };
  run(x, y);
  EXPECT_EQ(y, (std::vector<float>{2, 4, 6}));
  run(std::span(x).first(2), std::span(y).first(2));
  EXPECT_EQ(error_of([&] { run(x, std::span(y).first(2)); }),
            "invalid argument: output y of program is f32[3], 12 bytes; got memory for 8");
  EXPECT_EQ(error_of([&] { program.run({}, {}); }),
            "invalid argument: program gives 1 outputs, got memory for 0");
}

}  // namespace
}  // namespace weft::generate_test
