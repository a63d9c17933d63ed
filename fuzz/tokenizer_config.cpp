#include "formats/tokenizer_json.h"
#include "fuzz/target.h"

// The text of a tokenizer_config.json.
void weft::fuzz::target(std::string_view input) {
  auto config = formats::parse_tokenizer_config(input, "input");
  if (refused(config)) return;
  auto again = formats::parse_tokenizer_config(formats::write_tokenizer_config(*config), "written");
  expect(again.ok(), "what is written can be read: " + again.status().text());
  expect(again->bos == config->bos && again->eos == config->eos, "tokens go round");
  expect(again->chat_template == config->chat_template, "the chat template goes round");
}
