#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>

#include "compiler/compile.h"
#include "runtime/session.h"
#include "seam/registry.h"
#include "seam_watchers.h"
#include "test_backends.h"
#include "weft/generate.h"
#include "weft/ops.h"

// Prompts of different lengths, read together: sequences one after another, without padding.
namespace weft::testing::ragged_test {
namespace {

using nn::Decoder;
using Ids = std::vector<int32_t>;

constexpr int64_t kVocabulary = 61, kContext = 128, kLayers = 2, kWidth = 32;

/// Counts the multiply-adds of linear layers, by the operands that kernels are launched with.
class Multiplying : public Watching {
 public:
  using Watching::Watching;
  int64_t multiply_adds = 0;

  weft_code launch(const weft_launch* l, weft_error* e) override {
    const std::string_view op = l->plan->call->op;
    if (op == "linear" || op == "matmul") {
      const DLTensor &x = l->inputs[0]->dl, &y = l->outputs[0]->dl;
      int64_t n = x.shape[x.ndim - 1];
      for (int i = 0; i < y.ndim; ++i) n *= y.shape[i];
      multiply_adds += n;
    }
    return Watching::launch(l, e);
  }
};
Multiplying& multiplying() {
  static Multiplying& one = []() -> Multiplying& {
    auto* made =
        new Multiplying("watch_multiplying", value_or_raise(seam::registry().open("native"))->backend());
    conformance::adopt(*made);
    return *made;
  }();
  return one;
}

std::vector<std::unique_ptr<nn::LanguageModel>> models() {
  std::vector<std::unique_ptr<nn::LanguageModel>> all;
  all.push_back(std::make_unique<nn::GPT>(nn::GPTConfig{
      .vocabulary = kVocabulary, .context = kContext, .layers = kLayers, .heads = 2, .width = kWidth}));
  all.push_back(std::make_unique<nn::Llama>(nn::LlamaConfig{.vocabulary = kVocabulary,
                                                            .context = kContext,
                                                            .layers = kLayers,
                                                            .heads = 4,
                                                            .kv_heads = 2,
                                                            .width = kWidth,
                                                            .hidden = 48}));
  for (const auto& m : all) nn::build(*m, {.seed = 5}), nn::set_training(*m, false);
  return all;
}

std::vector<Ids> prompts_of(std::initializer_list<size_t> lengths) {
  std::vector<Ids> all;
  int32_t next = 1;
  for (const size_t n : lengths) {
    all.emplace_back(n);
    for (int32_t& t : all.back()) t = next = (next * 7 + 3) % kVocabulary;
  }
  return all;
}
void read(Decoder& decoder, const std::vector<Ids>& tokens) {
  const std::vector<std::span<const int32_t>> parts(tokens.begin(), tokens.end());
  decoder.read(parts);
}
void expect_same_scores(const Decoder& a, int64_t i, const Decoder& b, int64_t j) {
  float apart = 0, largest = 0;
  for (size_t k = 0; k < static_cast<size_t>(kVocabulary); ++k)
    apart = std::max(apart, std::abs(a.scores(i)[k] - b.scores(j)[k])),
    largest = std::max(largest, std::abs(b.scores(j)[k]));
  EXPECT_LE(apart, 1e-5f * largest) << "sequence " << i;
}

// As many multiply-adds as one after another: not those of four prompts of the longest length.
TEST(Ragged, PromptsOfDifferentLengthsComputeNoPadding) {
  multiplying();
  set_default_backend("watch_multiplying");
  const auto prompts = prompts_of({3, 40, 7, 100});
  for (const auto& model : models()) {
    const auto counted = [&](Decoder& decoder, const std::vector<Ids>& tokens) {
      multiplying().multiply_adds = 0;
      read(decoder, tokens);
      return multiplying().multiply_adds;
    };
    Decoder together(*model, {.batch = 4});
    int64_t alone = 0;
    const int64_t all = counted(together, prompts);
    for (int64_t i = 0; i < 4; ++i) {
      Decoder single(*model);
      alone += counted(single, {prompts[static_cast<size_t>(i)]});
      expect_same_scores(together, i, single, 0);
    }
    EXPECT_EQ(all, alone);
    if (dynamic_cast<const nn::GPT*>(model.get())) {
      EXPECT_EQ(all, 150 * kLayers * 12 * kWidth * kWidth + 4 * kVocabulary * kWidth);
    }
    // One of them goes on; the others have no token.
    EXPECT_LT(counted(together, {{}, {4, 5}, {}, {}}), all / 20);
  }
  set_default_backend("native");
}

// Some sequences read nothing, some a token, some rewind: each gets the scores that it would get alone, on
// every path through the ops.
TEST(Ragged, SequencesComeAndGoAsTheyLike) {
  for (const char* backend : {"native", "reference"}) {
    set_default_backend(backend);
    for (const auto& model : models()) {
      Decoder together(*model, {.batch = 3, .capacity = 24});
      const std::vector<std::vector<Ids>> rounds = {prompts_of({0, 9, 1}), prompts_of({5, 0, 0}),
                                                    prompts_of({1, 1, 1}), prompts_of({2, 14, 3})};
      std::vector<Ids> read_so_far(3);
      for (const auto& round : rounds) {
        read(together, round);
        for (size_t i = 0; i < 3; ++i) {
          read_so_far[i].insert(read_so_far[i].end(), round[i].begin(), round[i].end());
          if (round[i].empty()) continue;
          Decoder single(*model, {.capacity = 24});
          read(single, {read_so_far[i]});
          expect_same_scores(together, static_cast<int64_t>(i), single, 0);
        }
      }
    }
  }
  set_default_backend("native");
}

// A decoder's program, as its file has it: linked for powers of two of all tokens together.
TEST(Ragged, ADecoderLinksAtMost12Times) {
  set_default_backend("native");
  constexpr int64_t kMost = 2048;
  nn::GPT model({.vocabulary = kVocabulary, .context = kMost, .layers = 1, .heads = 1, .width = 16});
  nn::build(model, {.seed = 5}), nn::set_training(model, false);
  const auto path = std::filesystem::temp_directory_path() / fmt::format("weft_ragged_{}", ::getpid());
  Decoder(model).program().save(path);
  auto program = value_or_raise(compiler::read_file(path));
  std::filesystem::remove(path);
  auto session = value_or_raise(
      runtime::Session::create(std::make_shared<const program::CompiledProgram>(std::move(program)),
                               {value_or_raise(seam::registry().open("native"))}, Policy{}));
  const auto array = [](const Ids& of) {
    runtime::HostTensor t{{DType::i32, {static_cast<int64_t>(of.size())}},
                          std::vector<std::byte>(of.size() * sizeof(int32_t))};
    std::memcpy(t.bytes.data(), of.data(), t.bytes.size());
    return t;
  };
  std::vector<int64_t> sizes = {kMost, 1, 3};
  for (int64_t n = 4; n <= kMost; n *= 2) sizes.insert(sizes.end(), {n - 1, n, std::min(n + 1, kMost)});
  for (const int64_t n : sizes) {
    const auto prompt = prompts_of({static_cast<size_t>(n)});
    const auto out =
        session->run(std::vector{array(prompt[0]), array({0}), array({0, static_cast<int32_t>(n)})});
    ASSERT_TRUE(out.ok()) << n << ": " << out.status().text();
  }
  EXPECT_LE(session->links(), 12u);
}

}  // namespace
}  // namespace weft::testing::ragged_test
