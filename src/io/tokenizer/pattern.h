#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/tokenizer_json.h"

namespace weft::io {

/// Characters that got a general category after the Unicode version of older PCRE2.
struct NewerCharacters {
  char32_t first, last;
  const char* category;  ///< two letters
};
std::span<const NewerCharacters> newer_characters();

/// Part of a text, and whether the pattern matches it.
struct Piece {
  size_t begin = 0, end = 0;
  bool match = false;
};

/// A pattern of a `tokenizer.json`: text, or a regular expression of Oniguruma, which PCRE2 runs. Syntax that
/// they interpret differently is rewritten (the classes \s, \w and \p{..}) or refused. Immutable: any thread
/// may match.
class Pattern {
 public:
  /// Errors   unsupported for an expression that PCRE2 refuses or would interpret differently.
  static Result<Pattern> make(const formats::TokenPattern& from);

  /// Iterates over the matches of `text`, which is valid UTF-8, and the text between them, without gaps. An
  /// empty match directly after another match does not count.
  class Walk {
   public:
    Walk(const Pattern& pattern, std::string_view text);
    ~Walk();
    Walk(const Walk&) = delete;
    Walk& operator=(const Walk&) = delete;
    /// The next part; false at the end.
    bool next(Piece& piece);

   private:
    bool find(size_t& begin, size_t& end);

    const Pattern* pattern_;
    std::string_view text_;
    void* match_ = nullptr;           // pcre2_match_data, with a regular expression
    size_t from_ = 0, done_ = 0;      // the start of the next search; the end of the last part
    std::optional<size_t> last_end_;  // of the previous match
    std::optional<Piece> waiting_;    // a match to return after the text before it
  };

  /// Appends `text` to `out`, each match replaced by `content`.
  void replace(std::string_view text, std::string_view content, std::string& out) const;

 private:
  std::string text_;            // a plain pattern
  std::shared_ptr<void> code_;  // pcre2_code, of a regular expression
};

/// The same expression for PCRE2.
Result<std::string> to_pcre2(std::string_view oniguruma);

}  // namespace weft::io
