#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weft/status.h"

// `tokenizer.json`, the file of PyPI's `tokenizers`, as data; src/io/tokenizer interprets it.
namespace weft::formats {

/// Text, or a regular expression in the syntax of Oniguruma.
struct TokenPattern {
  std::string text;
  bool regex = false;
};

struct BertNormalizer {
  bool clean_text = true, space_ideographs = true, lowercase = true;
  std::optional<bool> strip_accents;  ///< nothing: as `lowercase`
};

struct TokenNormalizer {
  enum class Kind { nfc, nfd, nfkc, nfkd, prepend, replace, bert } kind = Kind::nfc;
  TokenPattern pattern;  ///< replace
  std::string content;   ///< prepend, replace
  BertNormalizer bert;
};

enum class PrependScheme { always, first, never };
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct PreTokenizer {
  enum class Kind { byte_level, split, metaspace, bert } kind = Kind::split;
  bool add_prefix_space = false, use_regex = true;  ///< byte_level
  TokenPattern pattern;                             ///< split
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;
  std::string replacement;  ///< metaspace: one character
  PrependScheme scheme = PrependScheme::always;
  bool split = true;
};

struct TokenDecoder {
  enum class Kind { byte_level, replace, byte_fallback, fuse, strip, metaspace, word_piece };
  Kind kind = Kind::fuse;
  std::string pattern, content;  ///< replace; strip: one character in `content`
  int64_t start = 0, stop = 0;   ///< strip
  std::string replacement;       ///< metaspace: one character
  PrependScheme scheme = PrependScheme::always;
  std::string prefix;  ///< word_piece: of tokens that go on with a word
  bool cleanup = true;
};

struct AddedToken {
  int64_t id = 0;
  std::string content;
  bool single_word = false, lstrip = false, rstrip = false, normalized = true, special = false;
};

struct BpeModel {
  std::vector<std::pair<std::string, int32_t>> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;
  std::optional<std::string> unknown;
  bool fuse_unknown = false, byte_fallback = false, ignore_merges = false;
};

struct WordPieceModel {
  std::vector<std::pair<std::string, int32_t>> vocabulary;
  std::string unknown = "[UNK]", prefix = "##";
  int64_t most_characters = 100;  ///< of a word; a longer one is unknown
};

/// Sequences of steps are flattened, in the order of their application.
struct TokenizerFile {
  std::vector<AddedToken> added;
  std::vector<TokenNormalizer> normalizers;
  std::vector<PreTokenizer> pre_tokenizers;
  std::vector<int32_t> before, after;  ///< what the post-processor puts around a single text
  std::optional<std::vector<TokenDecoder>> decoders;
  std::variant<BpeModel, WordPieceModel> model;
  std::optional<int64_t> longest;  ///< of `truncation`: the ids that a text is cut to
  std::optional<int32_t> padding;  ///< of `padding`: the id that fills up a batch
};

/// Errors   corrupt for any other file, unsupported for an unsupported part; both name the field.
Result<TokenizerFile> parse_tokenizer(std::string_view json, const std::string& where);

/// The text of a `tokenizer.json` with these parts, without `before` and `after`.
std::string write_tokenizer(const TokenizerFile& file);

/// The texts read from `tokenizer_config.json`; empty if absent.
struct TokenizerConfig {
  std::string bos, eos, chat_template;
};
std::string write_tokenizer_config(const TokenizerConfig& config);
/// Of several chat templates, the one named `default`.
Result<TokenizerConfig> parse_tokenizer_config(std::string_view json, const std::string& where);

}  // namespace weft::formats
