#include <numbers>

#include "cli/command.h"
#include "cli/show.h"
#include "cli/training/options.h"

// weft evaluate: how well a model foresees a text.
namespace weft::cli {
namespace {

struct Options {
  std::string model;
  std::vector<std::string> data;
  int64_t batch = 8;
};

int run(const Options& o, const Common& common) {
  const auto trained = nn::load_trained(o.model);
  const auto text = load_training_text(o.data, "", 0, &trained.info.tokenizer);
  if (text.tokens.tokenizer().to_json() != trained.info.tokenizer.to_json())
    throw Error(invalid("{} was made by another tokenizer than the model's: {} ids and {}", o.data[0],
                        text.tokens.tokenizer().size(), trained.info.tokenizer.size()));
  Show show(common.json);
  for (const auto& note : text.notes) show.note(note);
  const auto e = nn::evaluate(*trained.model, text.tokens.ids(), o.batch);
  // By bytes, models of different tokenizers can be compared: those of the text that the ids stand for.
  const auto foreseen = text.tokens.ids().subspan(1);
  const auto bytes = trained.info.tokenizer.decode(foreseen, false).size();
  const double bits = e.loss * static_cast<double>(e.tokens) / std::numbers::ln2 / static_cast<double>(bytes);
  show.result({{"tokens", e.tokens},
               {"loss", e.loss},
               {"perplexity", e.perplexity()},
               {"bits_per_byte", bits},
               {"backend", default_backend()}},
              fmt::format("loss {:.4f}, perplexity {:.2f}, {:.3f} bits a byte, over {} tokens; on {}", e.loss,
                          e.perplexity(), bits, grouped(e.tokens), default_backend()));
  return 0;
}

}  // namespace

extern const Command evaluate_command = {
    "evaluate", "say how well a model foresees a text: loss and perplexity",
    [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto o = std::make_shared<Options>();
      app.add_option("--model", o->model, "folder of the checkpoint").required().type_name("DIR");
      app.add_option("--data", o->data,
                     "text files, folders of them, - for standard input, or one token file")
          .required()
          .type_name("PATH");
      app.add_option("--batch", o->batch, "rows at a time").range(1, 65536).capture_default_str();
      return [o, &common] { return run(*o, common); };
    }};

}  // namespace weft::cli
