#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/tokenizer/pattern.h"

namespace weft::io {

/// GPT-2's pattern, built into the pre-tokenizer ByteLevel.
inline constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// The pre-tokenizers of a tokenizer, in order: a text becomes words, which the model never merges across.
class WordSplitter {
 public:
  using Take = std::function<void(std::string_view word)>;

  static Result<WordSplitter> make(const std::vector<formats::PreTokenizer>& steps);
  /// `first` says that `text` begins where the whole text does. Words are not empty.
  void split(std::string_view text, bool first, const Take& take) const { run(0, text, first, take); }
  /// Whether the model wants the words in the alphabet of bytes. Words are returned raw, which is shorter.
  bool bytes_wanted() const { return bytes_wanted_; }

 private:
  enum class Kind { prefix_space, split, to_bytes, metaspace };
  struct Step {
    Kind kind;
    Pattern pattern;
    formats::SplitBehavior behavior = formats::SplitBehavior::isolated;
    bool invert = false;
    std::string replacement;
    formats::PrependScheme scheme = formats::PrependScheme::never;
  };

  Status add(const formats::PreTokenizer& from);
  Status add_split(const formats::TokenPattern& pattern, formats::SplitBehavior behavior, bool invert);
  void run(size_t step, std::string_view text, bool first, const Take& take) const;
  void run_split(size_t step, std::string_view text, bool first, const Take& take) const;

  std::vector<Step> steps_;
  bool bytes_wanted_ = false;
};

}  // namespace weft::io
