#include <fmt/format.h>

#include "cases.h"
#include "weft/generate.h"

// Text generation, token by token: bound by the time to read all weights once.
namespace weft::speed {
namespace {

constexpr int64_t kVocabulary = 256, kContext = 256, kTokens = 64;
constexpr int32_t kFirst = 65;

struct Run {
  explicit Run(const nn::GPT& model)
      : decoder(model, {.capacity = kTokens + 1}), greedy({.temperature = 0}) {}
  void operator()() {
    decoder.rewind(0, 0);
    int32_t next = kFirst;
    for (int64_t i = 0; i < kTokens; ++i) {
      const std::span<const int32_t> one[] = {{&next, 1}};
      decoder.read(one);
      next = greedy.pick(decoder.scores(0));
    }
  }
  nn::Decoder decoder;
  io::Sampler greedy;
};

Case generation(int64_t layers, int64_t heads, int64_t width) {
  const auto model = std::make_shared<nn::GPT>(nn::GPTConfig{
      .vocabulary = kVocabulary, .context = kContext, .layers = layers, .heads = heads, .width = width});
  return {"", fmt::format("GPT {} x {}, {} tokens", layers, width, kTokens),
          [=] {
            const auto run = std::make_shared<Run>(*model);
            return Task{[run] { (*run)(); },
                        [run] {
                          const auto scores = run->decoder.scores(0);
                          return std::vector<float>(scores.begin(), scores.end());
                        }};
          },
          [=] {
            nn::build(*model, {.seed = 1});
            std::vector<Operand> weights;
            for (const Tensor& p : nn::parameters(*model)) {
              const auto sizes = p.sizes();
              weights.push_back({{sizes.begin(), sizes.end()}, p.to_vector<float>(), {}});
            }
            const auto kept = std::make_shared<std::vector<Operand>>(std::move(weights));
            auto tasks = peer_tasks("generate", *kept,
                                    {static_cast<double>(layers), static_cast<double>(heads), double{kFirst},
                                     static_cast<double>(kTokens)});
            for (auto& t : tasks) t.task.run = [kept, run = t.task.run] { run(); };
            return tasks;
          }};
}

}  // namespace

Group generations(int threads) {
  return {"generation", threads, 2, 2, {generation(4, 4, 128), generation(6, 6, 384)}};
}

}  // namespace weft::speed
