#pragma once
#include <string_view>
#include <vector>

#include "formats/tokenizer_json.h"
#include "io/tokenizer/bpe.h"

namespace weft::io {

/// WordPiece: a word becomes the longest token that it begins with, then the longest that the rest begins
/// with, and so on, as PyPI's `tokenizers` does it (BERT's vocabulary; Wu et al., Google's neural machine
/// translation system, 2016). A word that has no such tokens is the unknown one.
class WordPiece {
 public:
  /// Errors   corrupt for an unknown token that is missing, naming the field.
  static Result<WordPiece> make(formats::WordPieceModel model);

  /// Appends the ids of a word.
  void encode(std::string_view word, std::vector<int32_t>& ids) const;
  const TextMap<int32_t>& vocabulary() const { return vocabulary_; }

 private:
  TextMap<int32_t> vocabulary_;
  std::string prefix_;  // of tokens that go on with a word
  size_t most_characters_ = 0, longest_ = 0;
  int32_t unknown_ = -1;
};

}  // namespace weft::io
