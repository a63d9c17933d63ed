#include <chrono>

#include "cli/command.h"
#include "cli/show.h"
#include "weft/checkpoint.h"

// weft generate: text that a checkpoint makes up, character by character.
namespace weft::cli {
namespace {

struct Options {
  std::string model;
  std::string prompt;
  int64_t length = 200;
  double temperature = 0.8;
  uint64_t seed = 1;
};

// The characters that the model sees now: the end of what there is, with line ends in front where that is
// short.
Tensor window(const std::vector<int32_t>& ids, int64_t context, int32_t filler) {
  std::vector<int32_t> last(static_cast<size_t>(context), filler);
  const auto n = std::min(ids.size(), last.size());
  std::copy(ids.end() - static_cast<std::ptrdiff_t>(n), ids.end(),
            last.end() - static_cast<std::ptrdiff_t>(n));
  const int64_t shape[] = {1, context};
  return Tensor::of(std::span<const int32_t>(last), shape, DType::i32);
}

int run(const Options& o, const Common& common) {
  const auto run = nn::load_checkpoint(o.model);
  const auto& vocabulary = run.info.vocabulary;
  io::Sampler sampler(o.temperature, o.seed);
  auto ids = vocabulary.encode(io::from_utf8(o.prompt));
  const size_t prompt = ids.size();
  const NoGrad off;
  const auto start = std::chrono::steady_clock::now();
  if (!common.json) fmt::print("{}", o.prompt);
  for (int64_t i = 0; i < o.length; ++i) {
    const auto logits =
        run.model(window(ids, run.info.config.context, vocabulary.id(U'\n'))).to_vector<float>();
    ids.push_back(sampler.pick(logits));
    if (common.json) continue;
    fmt::print("{}", io::to_utf8(vocabulary.decode({&ids.back(), 1})));
    std::fflush(stdout);
  }
  if (!common.json) {
    fmt::print("\n");
    return 0;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::string made = io::to_utf8(vocabulary.decode(std::span<const int32_t>(ids).subspan(prompt)));
  fmt::print("{}\n", nlohmann::json{{"prompt", o.prompt},
                                    {"text", made},
                                    {"backend", default_backend()},
                                    {"characters_per_second", static_cast<double>(o.length) / seconds}}
                         .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return 0;
}

std::function<int()> setup(CLI::App& app, const Common& common) {
  const auto o = std::make_shared<Options>();
  app.add_option("--model", o->model, "folder of the checkpoint")->required()->type_name("DIR");
  app.add_option("--prompt", o->prompt, "text to go on from")->type_name("TEXT");
  app.add_option("--length", o->length, "characters to make up")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--temperature", o->temperature, "low keeps to what is likely, 0 takes only the likeliest")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  app.add_option("--seed", o->seed, "another one, another text")
      ->check(whole_number<uint64_t>(0))
      ->capture_default_str();
  return [o, &common] { return run(*o, common); };
}

}  // namespace

extern const Command generate_command = {"generate", "make up text with a trained model", setup};

}  // namespace weft::cli
