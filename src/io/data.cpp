#include <algorithm>
#include <map>

#include "weft/text.h"

namespace weft::io {
namespace {

constexpr char32_t kUnknown = U'\uFFFD';
constexpr size_t kBlock = 1024, kEvery = 20;

// Characters of the shortest text that has `validation` of them to validate on.
size_t least_text(size_t validation) {
  const size_t whole = (validation - 1) / kBlock;
  return (whole * kEvery + kEvery - 1) * kBlock + validation - whole * kBlock;
}

}  // namespace

Vocabulary Vocabulary::from_text(std::u32string_view text, size_t limit, size_t least) {
  std::map<char32_t, size_t> count;
  for (const char32_t c : text) ++count[c];
  std::vector<std::pair<size_t, char32_t>> kept;
  for (const auto& [c, n] : count)
    if (n >= least && c != kUnknown) kept.emplace_back(n, c);
  std::sort(kept.begin(), kept.end(),
            [](auto& a, auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  if (kept.size() > limit) kept.resize(limit);
  std::u32string characters;
  for (const auto& [n, c] : kept) characters += c;
  std::sort(characters.begin(), characters.end());
  return Vocabulary(kUnknown + characters);
}

Vocabulary::Vocabulary(std::u32string characters) : characters_(std::move(characters)) {
  if (characters_.empty() || characters_[0] != kUnknown)
    throw Error(invalid("a vocabulary must begin with the unknown mark U+FFFD"));
  for (size_t i = 2; i < characters_.size(); ++i)
    if (characters_[i - 1] >= characters_[i])
      throw Error(invalid("a vocabulary must be sorted without repeats; character {} is out of order", i));
}

int32_t Vocabulary::id(char32_t character) const {
  const auto at = std::lower_bound(characters_.begin() + 1, characters_.end(), character);
  return at == characters_.end() || *at != character ? 0 : static_cast<int32_t>(at - characters_.begin());
}

std::vector<int32_t> Vocabulary::encode(std::u32string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  for (const char32_t c : text) ids.push_back(id(c));
  return ids;
}

std::u32string Vocabulary::decode(std::span<const int32_t> ids) const {
  std::u32string out;
  for (const int32_t i : ids) {
    if (i < 0 || i >= size()) throw Error(invalid("character number {} is outside [0, {})", i, size()));
    out += characters_[static_cast<size_t>(i)];
  }
  return out;
}

TextData::TextData(std::span<const int32_t> ids, int64_t context, uint64_t seed)
    : context_(context), seed_(seed) {
  for (size_t at = 0, block = 0; at < ids.size(); at += kBlock, ++block) {
    const auto part = ids.subspan(at, std::min(kBlock, ids.size() - at));
    auto& to = block % kEvery == kEvery - 1 ? validation_ : train_;
    to.insert(to.end(), part.begin(), part.end());
  }
  if (validation_size() > context) return;  // and so the training text, which is longer, is
  throw Error(
      invalid("the text has {} characters, {} to train on and {} to validate on: too few for a context "
              "of {}, which wants {} in each, so a text of at least {}; give more text or a shorter "
              "context",
              ids.size(), train_size(), validation_size(), context, context + 1,
              least_text(static_cast<size_t>(context) + 1)));
}

static void add_row(Batch& b, const std::vector<int32_t>& text, size_t at, size_t context) {
  b.tokens.insert(b.tokens.end(), &text[at], &text[at] + context);
  b.targets.push_back(text[at + context]);
}

Batch TextData::train(uint64_t number, int64_t size) const {
  Batch b;
  const auto context = static_cast<size_t>(context_);
  const uint64_t places = train_.size() - context;
  for (int64_t i = 0; i < size; ++i) {
    const uint64_t word = random_word(seed_, number * static_cast<uint64_t>(size) + static_cast<uint64_t>(i));
    add_row(b, train_, word % places, context);
  }
  return b;
}

Batch TextData::validation(uint64_t number, int64_t size) const {
  Batch b;
  const auto context = static_cast<size_t>(context_);
  const uint64_t places = validation_.size() - context;
  // Steps of the golden section visit a range evenly however many are taken (Knuth, TAOCP 3, section 6.4,
  // theorem S).
  for (int64_t i = 0; i < size; ++i) {
    const uint64_t word =
        (number * static_cast<uint64_t>(size) + static_cast<uint64_t>(i)) * 0x9e3779b97f4a7c15ull;
    add_row(b, validation_, static_cast<size_t>(unit(word) * static_cast<double>(places)), context);
  }
  return b;
}

}  // namespace weft::io
