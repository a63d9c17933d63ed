#pragma once
#include "cli/command.h"
#include "weft/data.h"
#include "weft/text.h"

// Text as ids, for the commands that learn from it or judge by it.
namespace weft::cli {

struct ReadText {
  io::Tokens tokens;
  std::vector<std::string> files, notes;  ///< as in io::Text
};

/// Which tokenizer makes ids of a text.
struct TokenizerOptions {
  std::string tokenizer;  // characters, bytes, bpe, or a tokenizer.json
  int64_t vocabulary;     // of bpe, which is trained on the text
  const Syntax* app = nullptr;
};
/// --data, as the commands say it that take token files too.
Option add_data_option(Syntax& app, std::vector<std::string>& data);
/// --tokenizer and --vocabulary; the values that `o` has are the defaults.
void add_tokenizer_options(Syntax& app, TokenizerOptions& o);

/// A note on tokens that stand for what the tokenizer does not know; empty where there are none.
std::string unknown_in(std::span<const int32_t> ids, const io::Tokenizer& tokenizer);

/// By a tokenizer of one's own. Raises where a token file, which has one, meets --tokenizer.
ReadText read_text(const std::vector<std::string>& data, const TokenizerOptions& o);
/// By a model's tokenizer. Raises where a token file was made by another.
ReadText read_text(const std::vector<std::string>& data, const io::Tokenizer& of_model);

}  // namespace weft::cli
