#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/status.h"

// Text to token ids and back. One file format, `tokenizer.json` of PyPI's `tokenizers`, and one meaning: its.
namespace weft::io {

struct CharacterTraining {
  size_t limit = 4096;  ///< at most so many, the most frequent
  size_t least = 2;     ///< how often one must be there
};

struct BpeTraining {
  int64_t vocabulary_size = 8192;                         ///< special tokens and the 256 bytes included
  std::vector<std::string> specials = {"<|endoftext|>"};  ///< they have the first ids; the first ends a text
  int64_t least = 2;                                      ///< how often a pair must be there to be merged
};

/// A tokenizer of bytes, of characters, by byte-pair encoding or by WordPiece. Immutable, and cheap to copy;
/// any thread may use it.
///
/// Text is UTF-8. What is malformed is read as U+FFFD, one for each maximal part of a character, like in
/// Python's `bytes.decode("utf-8", errors="replace")`.
///
/// Errors   a file that is damaged is corrupt, a part of it that is not served is unsupported; both name the
/// field.
class Tokenizer {
 public:
  /// 256 ids, those of the bytes.
  static Tokenizer bytes();
  /// One id for each character of `text`, in order of code point; 0 is U+FFFD, what all others become.
  static Tokenizer train_characters(std::string_view text, const CharacterTraining& training = {});
  /// Byte-pair encoding of bytes, trained on `text`, which is split into words as GPT-2 does. Of pairs that
  /// are equally frequent the one of lower ids merges first: the same text gives the same tokenizer.
  static Tokenizer train_bpe(std::string_view text, const BpeTraining& training = {});
  /// From a `tokenizer.json`, or a folder with one. A `tokenizer_config.json` (and `chat_template.jinja`)
  /// beside it says which tokens begin and end a text, and the chat template.
  static Tokenizer load(const std::string& path);
  /// From the text of a `tokenizer.json`, and of its `tokenizer_config.json` where there is one.
  static Tokenizer from_json(std::string json, const std::string& config = "");

  /// Writes `tokenizer.json`, whole or not at all.
  void save(const std::string& path) const;
  const std::string& to_json() const;
  /// What to_json() does not hold, bos(), eos() and chat_template(), as the text of a
  /// `tokenizer_config.json`.
  std::string config_json() const;

  /// Ids of `text`. `add_specials`: with those that the file puts around a text. `read_specials`: special
  /// tokens that are written out in the text are recognized; otherwise they are text, as it may come from
  /// anybody. `most`: the text is cut at its end to give at most so many ids, those that are put around it
  /// included, which stay.
  std::vector<int32_t> encode(std::string_view text, bool add_specials = true, bool read_specials = true,
                              int64_t most = INT64_MAX) const;
  /// Where special tokens are written out in `text`: begins and ends, in order.
  std::vector<std::pair<size_t, size_t>> specials_in(std::string_view text) const;
  /// Text of `ids`. An id that stands for no token adds nothing.
  std::string decode(std::span<const int32_t> ids, bool skip_specials = true) const;

  /// The id of a token as the file spells it, in which a space may be written `Ġ` or `▁`.
  std::optional<int32_t> id(std::string_view token) const;
  /// Errors   invalid_argument for an id that stands for no token.
  const std::string& token(int32_t id) const;
  bool is_special(int32_t id) const;
  /// One more than the largest id.
  int64_t size() const;

  std::optional<int32_t> bos() const;  ///< begins a text
  std::optional<int32_t> eos() const;  ///< ends a text
  /// Stands for text that no token stands for, where the tokenizer does not cover all.
  std::optional<int32_t> unknown() const;
  /// Fills up a batch of texts that are not equally long.
  std::optional<int32_t> padding() const;
  /// The ids that the file wants a text cut to, for `most` of encode(): encode() does it when it is told to.
  std::optional<int64_t> longest() const;
  const std::string& chat_template() const;

 private:
  friend class TokenStream;
  struct Parts;
  explicit Tokenizer(std::shared_ptr<const Parts> parts);
  std::shared_ptr<const Parts> parts_;
};

/// Decodes ids that come one at a time. What push and finish give, put together, is what Tokenizer::decode
/// gives; a character is never cut.
class TokenStream {
 public:
  explicit TokenStream(Tokenizer tokenizer, bool skip_specials = true);
  ~TokenStream();
  TokenStream(TokenStream&&) noexcept;
  TokenStream& operator=(TokenStream&&) noexcept;

  /// The text that is certain by now and has not been given yet. It lives until the next call.
  std::string_view push(int32_t id);
  /// The rest; nothing may be pushed after it.
  std::string_view finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::io
