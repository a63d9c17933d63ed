#include "cli/text/reading.h"

#include <algorithm>
#include <filesystem>

#include "cli/show.h"

namespace weft::cli {
namespace {

// The token file, if `data` is one alone; empty for text.
std::string token_file(const std::vector<std::string>& data) {
  for (const auto& path : data) {
    if (path == "-" || !io::Tokens::is_token_file(path)) continue;
    if (data.size() == 1) return path;
    throw Error(invalid("{} is a token file, which stands alone: give no other --data beside it", path));
  }
  return "";
}

ReadText encoded(const std::vector<std::string>& data, auto make_tokenizer) {
  auto text = io::load_text(data);
  const io::Tokenizer tokenizer = make_tokenizer(text.utf8);
  auto ids = tokenizer.encode(text.utf8, false);
  if (auto words = unknown_in(ids, tokenizer); !words.empty()) text.notes.push_back(std::move(words));
  return {io::Tokens(std::move(ids), tokenizer), std::move(text.files), std::move(text.notes)};
}

}  // namespace

std::string unknown_in(std::span<const int32_t> ids, const io::Tokenizer& tokenizer) {
  const auto n = tokenizer.unknown() ? std::ranges::count(ids, *tokenizer.unknown()) : 0;
  if (n == 0) return "";
  return fmt::format("{} of {} tokens stand for characters that the tokenizer does not know", grouped(n),
                     grouped(std::ssize(ids)));
}

Option add_data_option(Syntax& app, std::vector<std::string>& data) {
  return app
      .add_option("--data", data,
                  "text files, folders of them (each file ends with a newline), - for standard input, or one "
                  "token file")
      .type_name("PATH");
}

void add_tokenizer_options(Syntax& app, TokenizerOptions& o) {
  o.app = &app;
  app.add_option("--tokenizer", o.tokenizer,
                 "characters, bytes, bpe (trained on the data), or a tokenizer.json")
      .capture_default_str();
  app.add_option("--vocabulary", o.vocabulary, "ids of --tokenizer bpe")
      .range(257, 1 << 20)
      .capture_default_str();
}

ReadText read_text(const std::vector<std::string>& data, const TokenizerOptions& o) {
  if (o.tokenizer != "bpe" && o.app->given("--vocabulary"))
    throw UsageError(
        invalid("--vocabulary is for --tokenizer bpe, which learns as many ids; the tokenizer here is {}",
                o.tokenizer));
  if (const auto file = token_file(data); !file.empty()) {
    for (const char* option : {"--tokenizer", "--vocabulary"})
      if (o.app->given(option))
        throw Error(invalid("{} is a token file, it has its tokenizer: leave {} out", file, option));
    return {io::Tokens::map(file), data, {}};
  }
  return encoded(data, [&](std::string_view text) {
    if (o.tokenizer == "characters") return io::Tokenizer::train_characters(text);
    if (o.tokenizer == "bytes") return io::Tokenizer::bytes();
    if (o.tokenizer == "bpe") return io::Tokenizer::train_bpe(text, {.vocabulary_size = o.vocabulary});
    std::error_code ec;
    if (!std::filesystem::exists(o.tokenizer, ec))
      throw Error(fail(Code::unavailable,
                       "--tokenizer {}: no such file, nor one of characters, bytes and bpe", o.tokenizer));
    return io::Tokenizer::load(o.tokenizer);
  });
}

ReadText read_text(const std::vector<std::string>& data, const io::Tokenizer& of_model) {
  const auto file = token_file(data);
  if (file.empty()) return encoded(data, [&](std::string_view) { return of_model; });
  auto tokens = io::Tokens::map(file);
  if (tokens.tokenizer().to_json() != of_model.to_json())
    throw Error(
        invalid("{} was made by another tokenizer than the model's ({} ids there, {} here): give the "
                "text itself, which the model's tokenizer reads",
                file, tokens.tokenizer().size(), of_model.size()));
  return {std::move(tokens), data, {}};
}

}  // namespace weft::cli
