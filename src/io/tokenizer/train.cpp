#include "io/tokenizer/train.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "io/tokenizer/bpe.h"
#include "io/tokenizer/byte_alphabet.h"
#include "io/tokenizer/words.h"
#include "io/utf8.h"

namespace weft::io {
namespace {

using Pair = uint64_t;  // the left id in the high half, so pairs sort by it
Pair pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
}

struct Word {
  std::vector<int32_t> ids;
  int64_t count = 0;
};

struct PairHash {
  size_t operator()(Pair p) const { return p * 0x9e3779b97f4a7c15ull >> 16; }
};

/// Merges the most frequent pair repeatedly. Counts are updated from the words that contained the pair.
class Merger {
 public:
  Merger(std::vector<Word> words, std::vector<std::string> tokens)
      : words_(std::move(words)), tokens_(std::move(tokens)) {
    for (size_t i = 0; i < tokens_.size(); ++i) ids_.emplace(tokens_[i], static_cast<int32_t>(i));
    for (size_t w = 0; w < words_.size(); ++w)
      for (size_t i = 0; i + 1 < words_[w].ids.size(); ++i)
        change(pair_of(words_[w].ids[i], words_[w].ids[i + 1]), words_[w].count, w);
    enter_new();
  }

  void run(size_t vocabulary_size, int64_t least) {
    while (tokens_.size() < vocabulary_size && !heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), rarer);
      Entry top = std::move(heap_.back());
      heap_.pop_back();
      if (const int64_t now = count_[top.pair]; now != top.count) {
        top.count = now;
        enter(std::move(top));
        continue;
      }
      if (top.count < std::max<int64_t>(1, least)) break;
      merge(top);
    }
  }

  std::vector<std::string> take_tokens() { return std::move(tokens_); }
  std::vector<std::pair<std::string, std::string>> take_merges() { return std::move(merges_); }

 private:
  struct Entry {
    int64_t count = 0;
    Pair pair = 0;
    std::vector<uint32_t> words;  // ascending
  };
  static bool rarer(const Entry& a, const Entry& b) {
    return a.count != b.count ? a.count < b.count : a.pair > b.pair;
  }

  void enter(Entry entry) {
    heap_.push_back(std::move(entry));
    std::push_heap(heap_.begin(), heap_.end(), rarer);
  }
  void change(Pair pair, int64_t by, size_t word) {
    count_[pair] += by;
    if (by < 0) return;
    auto& where = new_[pair];
    if (where.empty() || where.back() != word) where.push_back(static_cast<uint32_t>(word));
  }
  void enter_new() {
    for (auto& [pair, where] : new_)
      if (const int64_t count = count_[pair]; count > 0) enter({count, pair, std::move(where)});
    new_.clear();
  }

  void merge(const Entry& top) {
    const auto left = static_cast<int32_t>(top.pair >> 32),
               right = static_cast<int32_t>(top.pair & UINT32_MAX);
    const auto& a = tokens_[static_cast<size_t>(left)];
    const auto& b = tokens_[static_cast<size_t>(right)];
    merges_.emplace_back(a, b);
    const auto [at, fresh] = ids_.try_emplace(a + b, static_cast<int32_t>(tokens_.size()));
    if (fresh) tokens_.push_back(at->first);
    for (const uint32_t w : top.words) merge_in(w, left, right, at->second);
    enter_new();
  }

  void merge_in(size_t w, int32_t left, int32_t right, int32_t to) {
    auto& ids = words_[w].ids;
    const int64_t count = words_[w].count;
    size_t out = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != left || i + 1 >= ids.size() || ids[i + 1] != right) {
        ids[out++] = ids[i];
        continue;
      }
      ++i;
      if (out > 0) {
        change(pair_of(ids[out - 1], left), -count, w);
        change(pair_of(ids[out - 1], to), count, w);
      }
      if (i + 1 < ids.size()) {
        change(pair_of(right, ids[i + 1]), -count, w);
        change(pair_of(to, ids[i + 1]), count, w);
      }
      ids[out++] = to;
    }
    ids.resize(out);
  }

  std::vector<Word> words_;
  std::vector<std::string> tokens_;
  TextMap<int32_t> ids_;
  std::vector<std::pair<std::string, std::string>> merges_;
  std::unordered_map<Pair, int64_t, PairHash> count_;
  std::unordered_map<Pair, std::vector<uint32_t>, PairHash>
      new_;  // the pairs created by the last merge, and their words
  std::vector<Entry> heap_;
};

formats::TokenizerFile byte_level(bool use_regex) {
  formats::TokenizerFile file;
  file.pre_tokenizers.emplace_back();
  file.pre_tokenizers[0].kind = formats::PreTokenizer::Kind::byte_level;
  file.pre_tokenizers[0].use_regex = use_regex;
  file.decoders.emplace(1);
  (*file.decoders)[0].kind = formats::TokenDecoder::Kind::byte_level;
  return file;
}

// The words of `text` and their counts, in the ids of the alphabet, which begin at `first_id`.
std::vector<Word> count_words(std::string_view text, const WordSplitter& splitter, int32_t first_id) {
  std::array<int32_t, 256> id{};
  for (size_t i = 0; i < 256; ++i) id[ByteAlphabet::get().in_order()[i]] = first_id + static_cast<int32_t>(i);
  TextMap<size_t> places;
  std::vector<Word> words;
  splitter.split(text, true, [&](std::string_view word) {
    auto at = places.find(word);
    if (at == places.end()) {
      at = places.emplace(word, words.size()).first;
      words.emplace_back();
      for (const char c : word) words.back().ids.push_back(id[static_cast<unsigned char>(c)]);
    }
    ++words[at->second].count;
  });
  return words;
}

}  // namespace

formats::TokenizerFile byte_tokenizer() {
  auto file = byte_level(false);
  auto& model = file.model.emplace<formats::BpeModel>();
  for (int32_t b = 0; b < 256; ++b)
    model.vocabulary.emplace_back(ByteAlphabet::get().character(static_cast<unsigned char>(b)), b);
  return file;
}

formats::TokenizerFile character_tokenizer(std::string_view text, const CharacterTraining& training) {
  constexpr char32_t kUnknown = U'\uFFFD';
  std::map<char32_t, size_t> count;
  for (std::string_view rest = text; !rest.empty();) {
    const Utf8Character c = decode_utf8(rest);
    ++count[c.character];
    rest.remove_prefix(c.length);
  }
  std::vector<std::pair<size_t, char32_t>> kept;
  for (const auto& [c, n] : count)
    if (n >= training.least && c != kUnknown) kept.emplace_back(n, c);
  std::ranges::sort(
      kept, [](auto& a, auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  if (kept.size() > training.limit) kept.resize(training.limit);
  std::ranges::sort(kept, {}, &std::pair<size_t, char32_t>::second);
  kept.insert(kept.begin(), {0, kUnknown});
  formats::TokenizerFile file;
  file.decoders.emplace(1);  // Fuse
  auto& model = file.model.emplace<formats::BpeModel>();
  for (const auto& [n, c] : kept) {
    std::string token;
    append_utf8(token, c);
    model.vocabulary.emplace_back(token, static_cast<int32_t>(model.vocabulary.size()));
  }
  model.unknown = model.vocabulary[0].first;
  return file;
}

Result<formats::TokenizerFile> train(std::string_view text, const BpeTraining& training) {
  const auto specials = static_cast<int64_t>(training.specials.size());
  if (training.vocabulary_size < 256 + specials)
    return invalid("a vocabulary of {} tokens has no room for 256 bytes and {} special tokens",
                   training.vocabulary_size, specials);
  auto file = byte_level(true);
  std::vector<std::string> tokens = training.specials;
  for (const unsigned char b : ByteAlphabet::get().in_order())
    tokens.push_back(ByteAlphabet::get().character(b));
  for (int64_t i = 0; i < specials; ++i) {
    const auto& special = training.specials[static_cast<size_t>(i)];
    if (special.empty() || std::count(tokens.begin(), tokens.end(), special) > 1)
      return invalid("special token '{}' must not be empty, a byte, or there twice", special);
    if (!is_utf8(special))
      return invalid("special token {} ('{}') is not UTF-8, which a tokenizer's file wants", i,
                     repair_utf8(special));
    file.added.push_back({.id = i, .content = special, .normalized = false, .special = true});
  }
  std::string repaired;
  if (!is_utf8(text)) text = repaired = repair_utf8(text);
  WEFT_TRY(const WordSplitter splitter, WordSplitter::make(file.pre_tokenizers));
  Merger merger(count_words(text, splitter, static_cast<int32_t>(specials)), std::move(tokens));
  merger.run(static_cast<size_t>(training.vocabulary_size), training.least);
  auto& model = file.model.emplace<formats::BpeModel>();
  for (auto& token : merger.take_tokens())
    model.vocabulary.emplace_back(std::move(token), static_cast<int32_t>(model.vocabulary.size()));
  model.merges = merger.take_merges();
  return file;
}

}  // namespace weft::io
