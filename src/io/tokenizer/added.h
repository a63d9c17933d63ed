#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/tokenizer/bpe.h"
#include "io/tokenizer/normalize.h"

namespace weft::io {

/// The tokens that are found in the text before anything else.
class AddedTokens {
 public:
  /// A part of a text: an added token, or text (id -1).
  struct Part {
    size_t begin = 0, end = 0;
    int32_t id = -1;
  };

  /// Errors   corrupt for an id that differs from the one of `tokenizers`, or two tokens of the same text.
  static Result<AddedTokens> make(const std::vector<formats::AddedToken>& tokens,
                                  const TextMap<int32_t>& vocabulary, const Normalizer& normalizer);

  /// The parts of `text`, in order. `normalized` selects the tokens that stand for normalized text, or the
  /// others; `specials` includes special ones.
  std::vector<Part> split(std::string_view text, bool normalized, bool specials = true) const;
  const std::vector<formats::AddedToken>& all() const { return tokens_; }

 private:
  struct Node {
    std::map<unsigned char, size_t> next;
    ptrdiff_t token = -1;
  };
  /// Texts by their bytes, from the root at 0.
  struct Trie {
    std::vector<Node> nodes{1};
    bool begins[256] = {};
    void insert(std::string_view text, size_t token);
    /// The longest text at the front of `s`; -1 for none.
    ptrdiff_t longest(std::string_view s, size_t& length) const;
  };

  std::vector<formats::AddedToken> tokens_;
  Trie tries_[2];  // by `normalized`
};

}  // namespace weft::io
