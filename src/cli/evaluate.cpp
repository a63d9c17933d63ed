#include <numbers>

#include "cli/command.h"
#include "cli/program/backend.h"
#include "cli/show.h"
#include "cli/text/reading.h"
#include "weft/trainer.h"

// weft evaluate: the mean loss of a model on a text.
namespace weft::cli {
namespace {

struct Options {
  std::string model;
  std::vector<std::string> data;
  int64_t batch = 8;
};

int run(const Options& o, const Common& common) {
  check_computes();
  const auto trained = nn::load_trained(o.model);
  const auto text = read_text(o.data, trained.info.tokenizer);
  Show show(common.json);
  for (const auto& words : text.notes) note(words);
  const auto e = nn::evaluate(*trained.model, text.tokens.ids(), o.batch);
  // Per byte of the decoded text, so that models with different tokenizers can be compared.
  const auto predicted = text.tokens.ids().subspan(1);
  const auto bytes = trained.info.tokenizer.decode(predicted, false).size();
  const double bits = e.loss * static_cast<double>(e.tokens) / std::numbers::ln2 / static_cast<double>(bytes);
  show.result({{"tokens", e.tokens},
               {"loss", e.loss},
               {"perplexity", e.perplexity()},
               {"bits_per_byte", bits},
               {"backend", default_backend()}},
              fmt::format("loss {:.4f}, perplexity {:.2f}, {:.3f} bits a byte, over {}; on {}", e.loss,
                          e.perplexity(), bits, counted(e.tokens, "token"), default_backend()));
  return 0;
}

}  // namespace

extern const Command evaluate_command = {
    "evaluate", "measure a model on a text: mean loss and perplexity",
    [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto o = std::make_shared<Options>();
      app.add_option("--model", o->model, "folder of the checkpoint").required().type_name("DIR");
      add_data_option(app, o->data).required();
      app.add_option("--batch", o->batch, "rows at a time").range(1, 65536).capture_default_str();
      return [o, &common] { return run(*o, common); };
    }};

}  // namespace weft::cli
