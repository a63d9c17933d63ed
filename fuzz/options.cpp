#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/training/options.h"
#include "formats/json.h"
#include "fuzz/target.h"
#include "nn/settings.h"

namespace weft::fuzz {

// Words with white space between, the last one first, as CLI11 takes them.
static std::vector<std::string> words_of(std::string_view input) {
  std::istringstream in{std::string(input)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  std::ranges::reverse(words);
  return words;
}

// Options of `weft train`, which has all kinds of them. What they ask for is what a checkpoint can say.
void target(std::string_view input) {
  CLI::App app("weft train");
  cli::Syntax syntax(app);
  cli::TrainOptions o;
  cli::add_train_options(syntax, o);
  try {
    app.parse(words_of(input));
  } catch (const CLI::ParseError& e) {
    expect(e.what()[0] != '\0', "a refusal says why");
    return;
  }
  nn::TrainSettings asked, again;
  if (refused_by([&] { asked = o.asked(300); })) return;
  const auto text = nn::settings_json(asked).dump();
  auto read = formats::parse_json_object(text, "asked");
  expect(read.ok(), "settings are JSON: " + read.status().text());
  const Status s = nn::read_settings("asked", *read, again);
  expect(s.ok(), "a checkpoint can say what was asked for: " + s.text());
  expect(nn::settings_json(again).dump() == text, "settings go round");
}

}  // namespace weft::fuzz
