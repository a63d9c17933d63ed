#include "io/tokenizer/word_piece.h"

#include <algorithm>

namespace weft::io {

static bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The last one of a text, which may be cut within it.
static void drop_character(std::string& text) {
  while (continues(text.back())) text.pop_back();
  text.pop_back();
}

Result<WordPiece> WordPiece::make(formats::WordPieceModel model) {
  WordPiece w;
  w.prefix_ = std::move(model.prefix);
  w.most_characters_ = static_cast<size_t>(model.most_characters);
  w.vocabulary_.reserve(model.vocabulary.size());
  for (auto& [token, id] : model.vocabulary) {
    w.longest_ = std::max(w.longest_, token.size());
    w.vocabulary_.emplace(std::move(token), id);
  }
  const auto unknown = w.vocabulary_.find(model.unknown);
  if (unknown == w.vocabulary_.end())
    return fail(Code::corrupt, "model.unk_token: '{}' is not in model.vocab", model.unknown);
  w.unknown_ = unknown->second;
  return w;
}

void WordPiece::encode(std::string_view word, std::vector<int32_t>& ids) const {
  const size_t had = ids.size();
  const auto is_unknown = [&] {
    ids.resize(had);
    ids.push_back(unknown_);
  };
  const auto characters = std::ranges::count_if(word, [](char c) { return !continues(c); });
  if (static_cast<size_t>(characters) > most_characters_) return is_unknown();
  std::string part;
  while (!word.empty()) {
    part = ids.size() == had ? "" : prefix_;
    const size_t before = part.size();
    part += word.substr(0, longest_);
    auto found = vocabulary_.end();
    while (part.size() > before && (found = vocabulary_.find(part)) == vocabulary_.end())
      drop_character(part);
    if (found == vocabulary_.end()) return is_unknown();
    ids.push_back(found->second);
    word.remove_prefix(part.size() - before);
  }
}

}  // namespace weft::io
