#include "formats/tokenizer_model.h"

#include <unordered_set>

namespace weft::formats {
namespace {

Result<std::pair<std::string, std::string>> read_merge(const Field& f) {
  if (f.value().is_array()) {
    if (f.value().size() != 2) return f.wrong("two texts");
    WEFT_TRY(std::string a, f.item(0).text());
    WEFT_TRY(std::string b, f.item(1).text());
    return std::pair(std::move(a), std::move(b));
  }
  WEFT_TRY(const std::string both, f.text());
  const size_t space = both.find(' ');
  if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos)
    return f.wrong("two tokens with one space between them");
  return std::pair(both.substr(0, space), both.substr(space + 1));
}

Status read_vocabulary(const Field& f, std::vector<std::pair<std::string, int32_t>>& vocabulary) {
  if (!f.value().is_object()) return f.wrong("an object");
  std::unordered_set<int64_t> seen;
  vocabulary.reserve(f.value().size());
  for (const auto& [token, number] : f.value().items()) {
    WEFT_TRY(const int64_t id, Field(&number, fmt::format("{}['{}']", f.where(), token)).count());
    if (!seen.insert(id).second) return fail(Code::corrupt, "{}: id {} stands for two tokens", f.where(), id);
    vocabulary.emplace_back(token, static_cast<int32_t>(id));
  }
  return {};
}

Result<BpeModel> read_bpe(const Field& f) {
  BpeModel model;
  WEFT_CHECK(f.only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                     "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"}));
  if (const Field dropout = f.at("dropout"); !dropout.null() && dropout.value() != 0)
    return dropout.unsupported("dropout");
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const Field affix = f.at(name); !affix.null() && affix.value() != "")
      return affix.unsupported("text put to the parts of a word");
  if (!f.at("unk_token").null()) {
    WEFT_TRY(std::string unknown, f.at("unk_token").text());
    model.unknown = std::move(unknown);
  }
  WEFT_TRY(model.fuse_unknown, f.at("fuse_unk").flag(false));
  WEFT_TRY(model.byte_fallback, f.at("byte_fallback").flag(false));
  WEFT_TRY(model.ignore_merges, f.at("ignore_merges").flag(false));
  WEFT_CHECK(read_vocabulary(f.at("vocab"), model.vocabulary));
  const Field merges = f.at("merges");
  WEFT_TRY(const size_t n, merges.list());
  model.merges.reserve(n);
  for (size_t i = 0; i < n; ++i) {
    WEFT_TRY(auto merge, read_merge(merges.item(i)));
    model.merges.push_back(std::move(merge));
  }
  return model;
}

Result<WordPieceModel> read_word_piece(const Field& f) {
  WordPieceModel model;
  WEFT_CHECK(f.only({"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"}));
  WEFT_TRY(model.unknown, f.at("unk_token").text());
  WEFT_TRY(model.prefix, f.at("continuing_subword_prefix").text());
  WEFT_TRY(model.most_characters, f.at("max_input_chars_per_word").count());
  WEFT_CHECK(read_vocabulary(f.at("vocab"), model.vocabulary));
  return model;
}

}  // namespace

Result<std::variant<BpeModel, WordPieceModel>> read_token_model(const Field& f) {
  using Model = std::variant<BpeModel, WordPieceModel>;
  std::string type = "BPE";
  if (!f.at("type").null()) {
    WEFT_TRY(type, f.at("type").text());
  }
  if (type == "WordPiece") {
    WEFT_TRY(auto model, read_word_piece(f));
    return Model(std::move(model));
  }
  if (type != "BPE") return f.at("type").unsupported(fmt::format("model '{}'", type));
  WEFT_TRY(auto model, read_bpe(f));
  return Model(std::move(model));
}

}  // namespace weft::formats
