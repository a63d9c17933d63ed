#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/tokenizer.h"

// Token ids as training data.
namespace weft::io {

/// A text as ids, and the tokenizer that made them. A copy shares both; any thread may read it.
class Tokens {
 public:
  Tokens(std::vector<int32_t> ids, Tokenizer tokenizer);
  /// A memory-mapped token file: pages are read on demand.
  ///
  /// Errors   unavailable when it can't be read; corrupt, with the field, when it is damaged or no token
  /// file.
  ///          The ids are checked when batches are drawn.
  static Tokens map(const std::string& path);
  /// Is this a token file, by its first bytes?
  static bool is_token_file(const std::string& path);
  /// Writes a token file atomically: safetensors with one tensor `tokens`, i32, and the tokenizer
  /// as JSON in the metadata under "tokenizer" and "tokenizer_config".
  void save(const std::string& path) const;

  std::span<const int32_t> ids() const { return ids_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }

 private:
  Tokens(std::shared_ptr<const void> owner, std::span<const int32_t> ids, Tokenizer tokenizer);
  std::shared_ptr<const void> owner_;  // of the ids
  std::span<const int32_t> ids_;
  Tokenizer tokenizer_;
};

/// Rows of ids, and for each id the one that follows it.
struct Batch {
  int64_t rows = 0;
  std::vector<int32_t> tokens, targets;  ///< [rows, context]
};

/// Training and validation rows of a text.
///
/// The text is cut into groups of equal length; the last twentieth of each is for validation, so that both
/// parts hold all kinds of text in it. An epoch visits each row of the training part once, in an order of its
/// own, the rows moved a little from epoch to epoch. Batch number n is a function of seed and n: a run that
/// is taken up again sees what it would have seen, and there is no other state to keep.
class TokenData {
 public:
  /// Errors   invalid_argument when the text is too short for a row in each part: it wants 2 (context + 1)
  ///          tokens at least.
  TokenData(Tokens tokens, int64_t context, uint64_t seed);

  /// Errors   corrupt when an id is outside of the tokenizer's.
  Batch train(uint64_t number, int64_t rows) const;
  /// The same rows each time, spread evenly over the validation part, whose rows there are validation_rows().
  Batch validation(uint64_t number, int64_t rows) const;

  int64_t train_tokens() const { return groups_ * train_; }
  int64_t validation_tokens() const { return groups_ * validation_; }
  /// Rows of an epoch, and of the validation part.
  int64_t train_rows() const { return groups_ * rows_in_group_; }
  int64_t validation_rows() const { return groups_ * (validation_ - 1) / context_; }
  int64_t context() const { return context_; }
  const Tokenizer& tokenizer() const { return tokens_.tokenizer(); }

 private:
  void add_row(Batch& b, int64_t at) const;

  Tokens tokens_;
  int64_t context_ = 0;
  uint64_t seed_ = 0;
  int64_t groups_ = 0, group_ = 0, train_ = 0, validation_ = 0;  // groups, and tokens in one and its parts
  int64_t rows_in_group_ = 0, shifts_ = 0;  // of training; places where the first may begin
};

}  // namespace weft::io
