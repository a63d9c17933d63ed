#pragma once
#include "cli/command.h"
#include "weft/data.h"
#include "weft/text.h"

// Text as ids, for commands that train or evaluate.
namespace weft::cli {

struct ReadText {
  io::Tokens tokens;
  std::vector<std::string> files, notes;  ///< as in io::Text
};

/// The choice of a tokenizer.
struct TokenizerOptions {
  std::string tokenizer;  // characters, bytes, bpe, or a tokenizer.json
  int64_t vocabulary;     // of bpe, which is trained on the text
  const Syntax* app = nullptr;
};
/// --data, for commands that also take token files.
Option add_data_option(Syntax& app, std::vector<std::string>& data);
/// --tokenizer and --vocabulary; the values in `o` are the defaults.
void add_tokenizer_options(Syntax& app, TokenizerOptions& o);

/// A note on unknown tokens; empty if there are none.
std::string unknown_in(std::span<const int32_t> ids, const io::Tokenizer& tokenizer);

/// With a new tokenizer. Raises for a token file, which has one, together with --tokenizer.
ReadText read_text(const std::vector<std::string>& data, const TokenizerOptions& o);
/// With a model's tokenizer. Raises if a token file was made by another one.
ReadText read_text(const std::vector<std::string>& data, const io::Tokenizer& of_model);

}  // namespace weft::cli
