#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/random.h"
#include "weft/status.h"

// Text as training data: files to characters, characters to numbers, numbers to batches.
namespace weft::io {

/// UTF-8 to code points; each maximal part of a malformed sequence becomes U+FFFD, like in Python. `valid`
/// (may be null) says if there was none.
std::u32string from_utf8(std::string_view bytes, bool* valid = nullptr);
std::string to_utf8(std::u32string_view characters);

/// What was read.
struct Text {
  std::u32string characters;
  std::vector<std::string> files;  ///< in the order in which they were joined
  std::vector<std::string> notes;  ///< what was left out or read in another way, and why
};

/// Reads files, and every text file in folders and below, in order of path; the same file is read once,
/// whatever links lead to it. Files are UTF-8; one that is not is read as Latin-1 and noted. A binary file in
/// a folder is left out and noted.
///
/// Errors   unavailable for a path that does not exist or can't be read; invalid_argument for an empty or
/// binary file that
///          was named itself, or when nothing is left.
Text load_text(const std::vector<std::string>& paths);

/// Characters and their numbers. Number 0 is the unknown mark, U+FFFD: what stands for every character that
/// has no number.
class Vocabulary {
 public:
  /// The characters that `text` has at least `least` times, at most `limit` of them, numbered in order of
  /// code point.
  static Vocabulary from_text(std::u32string_view text, size_t limit = 127, size_t least = 8);
  /// From what characters() gave. Errors: invalid_argument when it does not begin with the mark or repeats
  /// itself.
  explicit Vocabulary(std::u32string characters);

  int64_t size() const { return static_cast<int64_t>(characters_.size()); }
  const std::u32string& characters() const { return characters_; }
  int32_t id(char32_t character) const;
  std::vector<int32_t> encode(std::u32string_view text) const;
  std::u32string decode(std::span<const int32_t> ids) const;

 private:
  std::u32string characters_;  // sorted from the second on
};

/// Rows of `context` characters and the character that follows each.
struct Batch {
  std::vector<int32_t> tokens;   ///< [size, context]
  std::vector<int32_t> targets;  ///< [size]
};

/// Training and validation text, and the batches drawn from them.
///
/// Every 20th block of 1024 characters is for validation, so that both parts hold all kinds of text in it.
/// Batch number n is a function of seed and n: a run that is taken up again sees what it would have seen.
class TextData {
 public:
  /// Errors   invalid_argument when a part has no room for a context and its next character: wants 19 blocks
  /// and a context at least.
  TextData(std::span<const int32_t> ids, int64_t context, uint64_t seed);

  Batch train(uint64_t number, int64_t size) const;
  /// The same rows each time, spread evenly over the validation text.
  Batch validation(uint64_t number, int64_t size) const;
  int64_t train_size() const { return static_cast<int64_t>(train_.size()); }
  int64_t validation_size() const { return static_cast<int64_t>(validation_.size()); }

 private:
  std::vector<int32_t> train_, validation_;
  int64_t context_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace weft::io
