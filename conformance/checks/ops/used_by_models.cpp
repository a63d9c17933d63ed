#include "conformance/check.h"
#include "conformance/numbers.h"
#include "conformance/seam/rig.h"
#include "weft/generate.h"
#include "weft/ledger.h"
#include "weft/models.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/vision.h"

// Every kernel that models run must be covered by a case: otherwise nobody judges it.
namespace weft::conformance::checks::used_by_models {
namespace {

constexpr int64_t kVocabulary = 29, kContext = 16, kRows = 2;

Tensor some_tokens(uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> ids(static_cast<size_t>(kRows * kContext));
  for (auto& id : ids) id = static_cast<int32_t>(random.bits() % kVocabulary);
  const int64_t shape[] = {kRows, kContext};
  return Tensor::of(std::span<const int32_t>(ids), shape, DType::i32);
}

// A training step, eagerly and as one program, and decoding, one token at a time and several.
void live(nn::LanguageModel& model) {
  nn::build(model, {.seed = 3});
  nn::AdamW optimizer(nn::parameters(model), {.clip = 1});
  const Tensor rate = Tensor::scalar(1e-3, DType::f32);
  nn::set_training(model, true);
  (void)nn::train_step(model, optimizer, {some_tokens(1), some_tokens(2)}, rate).item();
  const TensorType tokens{DType::i32, {kRows, kContext}};
  auto step = compile(
      [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{nn::train_step(model, optimizer, {in[0], in[1]}, in[2])};
      },
      {{"tokens", tokens}, {"targets", tokens}, {"rate", {DType::f32, {}}}});
  (void)step({some_tokens(1), some_tokens(2), rate})[0].item();
  nn::set_training(model, false);
  nn::Decoder decoder(model);
  const int32_t prompt[] = {1, 2, 3, 4, 5}, next[] = {6};
  for (const std::span<const int32_t> read :
       {std::span<const int32_t>(prompt), std::span<const int32_t>(next)})
    decoder.read({&read, 1});
}

void live(nn::ResNet& model) {
  nn::build(model, {.seed = 3});
  nn::SGD optimizer(nn::parameters(model), {.momentum = 0.9});
  nn::set_training(model, true);
  std::vector<float> pixels(4 * 2 * 8 * 8);
  Random random(5);
  for (float& p : pixels) p = static_cast<float>(random.normal());
  const int64_t image[] = {4, 2, 8, 8};
  const Tensor loss = cross_entropy(model(Tensor::of(std::span<const float>(pixels), image, DType::f32)),
                                    Tensor::of({0, 1, 2, 0}, {4}, DType::i32));
  loss.backward();
  optimizer.step(Tensor::scalar(1e-2, DType::f32));
}

Found all_covered(CheckRun& run) {
  const OnBackend on(run.backend());
  reset_ledger();
  nn::GPT gpt(
      {.vocabulary = kVocabulary, .context = kContext, .layers = 2, .heads = 2, .width = 32, .dropout = 0.1});
  nn::Llama llama({.vocabulary = kVocabulary,
                   .context = kContext,
                   .layers = 2,
                   .heads = 4,
                   .kv_heads = 2,
                   .width = 32,
                   .hidden = 64,
                   .qkv_bias = true,
                   .norm_heads = true});
  nn::ResNet resnet({.channels = 2, .classes = 3, .widths = {4, 6, 8}, .blocks = 1});
  live(gpt), live(llama), live(resnet);
  std::string missing;
  for (const auto& row : ledger_rows())
    if (row.op != "copy" && !run.covered.contains(row.kernel))
      missing += fmt::format("{}{} (for {})", missing.empty() ? "no case covers " : ", ", row.kernel, row.op);
  return Found::wrong(missing);
}

void run(CheckRun& run) {
  run.run("GPT, Llama and ResNet", [&] {
    if (run.options().selects()) return Found::skipped("only a run of all checks knows what is covered");
    return all_covered(run);
  });
}

}  // namespace

extern const Check check = {"used_by_models", "every kernel that a model runs was judged in some case", run};

}  // namespace weft::conformance::checks::used_by_models
