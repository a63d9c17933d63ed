#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/tokenizer_json.h"

namespace weft::io {

/// A string key that can be looked up by string_view.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
};
template <class T>
using TextMap = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

/// The merges: pairs of tokens, their rank and result. Open addressing, at most half full.
class MergeTable {
 public:
  struct Merge {
    uint64_t pair = 0;
    uint32_t rank = UINT32_MAX;  // of no merge
    int32_t to = 0;
  };

  void reserve(size_t merges);
  void insert(int32_t left, int32_t right, uint32_t rank, int32_t to);  // the last entry of a pair wins
  const Merge* find(int32_t left, int32_t right) const {
    const uint64_t pair = key(left, right);
    for (size_t at = slot(pair);; at = (at + 1) & mask_) {
      const Merge& m = slots_[at];
      if (m.rank == UINT32_MAX) return nullptr;
      if (m.pair == pair) return &m;
    }
  }

 private:
  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }
  size_t slot(uint64_t pair) const { return (pair * 0x9e3779b97f4a7c15ull >> 20) & mask_; }

  std::vector<Merge> slots_ = std::vector<Merge>(2);
  size_t mask_ = 1;
};

/// Byte-pair encoding: a word becomes its characters, and the pair of lowest rank merges until none is left
/// (Sennrich, Haddow and Birch, Neural machine translation of rare words with subword units, ACL 2016), as
/// PyPI's `tokenizers` does it.
class Bpe {
 public:
  /// Errors   corrupt for a used token that is missing, naming the field.
  static Result<Bpe> make(formats::BpeModel model);

  /// The state of a word being merged, with work memory. One thread at a time.
  class Work {
    friend class Bpe;
    struct Symbol {
      int32_t id, previous, next;
      bool gone;
    };
    struct Candidate {
      uint32_t rank, at;
      int32_t to;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  /// Appends the ids of a word.
  void encode(std::string_view word, Work& work, std::vector<int32_t>& ids) const;
  const TextMap<int32_t>& vocabulary() const { return vocabulary_; }

 private:
  void split(std::string_view word, Work& work) const;
  bool fall_back(std::string_view character, Work& work) const;
  void merge(Work& work) const;
  void consider(Work& work, int32_t left, int32_t right) const;

  TextMap<int32_t> vocabulary_;
  std::unordered_map<char32_t, int32_t> characters_;  // those of the vocabulary that are one character
  std::array<int32_t, 128> ascii_{};
  std::array<int32_t, 256> bytes_{};  // of byte_fallback; -1 where there is none
  MergeTable merges_;
  size_t merge_count_ = 0;
  int32_t unknown_ = -1;
  bool fuse_unknown_ = false, byte_fallback_ = false, ignore_merges_ = false;
};

}  // namespace weft::io
