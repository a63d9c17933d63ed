#include "weft/data.h"

#include <algorithm>
#include <bit>

#include "weft/random.h"
#include "weft/status.h"

namespace weft::io {
namespace {

constexpr int64_t kEvery = 20;  // one token in kEvery is for validation

/// Number `i` of a permutation of [0, n) chosen by `key`, without a stored list.
///
/// Source   Black and Rogaway, Ciphers with arbitrary finite domains (CT-RSA 2002): a Feistel network over
/// the
///          next power of four, walked until the number is in range.
uint64_t shuffled(uint64_t i, uint64_t n, uint64_t key) {
  const int half = (std::bit_width(std::max<uint64_t>(n, 2) - 1) + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t left = i >> half, right = i & mask;
      i = right << half | ((left ^ random_word(key + round, right)) & mask);
    }
  } while (i >= n);
  return i;
}

}  // namespace

TokenData::TokenData(Tokens tokens, int64_t context, uint64_t seed)
    : tokens_(std::move(tokens)), context_(context), seed_(seed) {
  const auto all = static_cast<int64_t>(tokens_.ids().size());
  if (context < 1) throw Error(invalid("a context must be at least 1, got {}", context));
  if (all < 2 * (context + 1))
    throw Error(invalid(
        "the text has {} tokens: too few for a context of {}, which wants {} at least, half of them to "
        "validate on; give more text or a shorter context",
        all, context, 2 * (context + 1)));
  groups_ = std::max<int64_t>(1, all / std::max<int64_t>(kEvery * 1024, kEvery * (context + 1)));
  group_ = all / groups_;
  validation_ = std::max(group_ / kEvery, context + 1);
  train_ = group_ - validation_;
  // A row of `context` ids and the next id; the first row may begin anywhere in the first `context`.
  rows_in_group_ = std::max<int64_t>(1, (train_ - context) / context);
  shifts_ = std::min(context, train_ - rows_in_group_ * context);
}

void TokenData::add_row(Batch& b, int64_t at) const {
  const auto row = tokens_.ids().subspan(static_cast<size_t>(at), static_cast<size_t>(context_) + 1);
  for (const int32_t id : row)
    if (id < 0 || id >= tokenizer().size())
      throw Error(fail(Code::corrupt, "the tokens have id {}, the tokenizer's are in [0, {})", id,
                       tokenizer().size()));
  b.tokens.insert(b.tokens.end(), row.begin(), row.end() - 1);
  b.targets.insert(b.targets.end(), row.begin() + 1, row.end());
}

Batch TokenData::train(uint64_t number, int64_t rows) const {
  Batch b{.rows = rows, .tokens = {}, .targets = {}};
  const auto epoch_rows = static_cast<uint64_t>(train_rows());
  for (int64_t r = 0; r < rows; ++r) {
    const uint64_t n = number * static_cast<uint64_t>(rows) + static_cast<uint64_t>(r);
    const uint64_t key = random_word(seed_, n / epoch_rows);
    const auto row = static_cast<int64_t>(shuffled(n % epoch_rows, epoch_rows, key));
    const auto shift = static_cast<int64_t>(random_word(key, 4) % static_cast<uint64_t>(shifts_));
    add_row(b, row / rows_in_group_ * group_ + shift + row % rows_in_group_ * context_);
  }
  return b;
}

Batch TokenData::validation(uint64_t number, int64_t rows) const {
  Batch b{.rows = rows, .tokens = {}, .targets = {}};
  const auto places = static_cast<double>(groups_ * (validation_ - context_));
  // Steps of the golden ratio cover a range evenly for any number of steps (Knuth, TAOCP 3, section 6.4,
  // theorem S).
  for (int64_t r = 0; r < rows; ++r) {
    const uint64_t word =
        (number * static_cast<uint64_t>(rows) + static_cast<uint64_t>(r)) * 0x9e3779b97f4a7c15ull;
    const auto place = static_cast<int64_t>(unit(word) * places);
    add_row(b, place / (validation_ - context_) * group_ + train_ + place % (validation_ - context_));
  }
  return b;
}

}  // namespace weft::io
