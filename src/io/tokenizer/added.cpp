#include "io/tokenizer/added.h"

#include <algorithm>

#include "io/utf8.h"

namespace weft::io {
namespace {

bool begins_with_word(std::string_view s) {
  size_t length = 0;
  return !s.empty() && is_word_part(first_character(s, length));
}

// The offset of the last character of `s`, or of its last byte if that is malformed.
size_t last_character(std::string_view s) {
  for (size_t length = 1; length <= std::min<size_t>(s.size(), 4); ++length)
    if (const auto c = decode_utf8(s.substr(s.size() - length)); c.valid && c.length == length)
      return s.size() - length;
  return s.size() - 1;
}

bool ends_with_word(std::string_view s) {
  return !s.empty() && begins_with_word(s.substr(last_character(s)));
}

size_t without_space_at_end(std::string_view s) {
  size_t length = 0;
  while (!s.empty() && is_space(first_character(s.substr(last_character(s)), length)))
    s.remove_suffix(length);
  return s.size();
}

size_t space_at_begin(std::string_view s) {
  const size_t whole = s.size();
  size_t length = 0;
  while (!s.empty() && is_space(first_character(s, length))) s.remove_prefix(length);
  return whole - s.size();
}

}  // namespace

void AddedTokens::Trie::insert(std::string_view text, size_t token) {
  if (text.empty()) return;
  begins[static_cast<unsigned char>(text[0])] = true;
  size_t at = 0;
  for (const char c : text) {
    const auto [next, fresh] = nodes[at].next.try_emplace(static_cast<unsigned char>(c), nodes.size());
    at = next->second;
    if (fresh) nodes.emplace_back();
  }
  if (nodes[at].token < 0) nodes[at].token = static_cast<ptrdiff_t>(token);
}

ptrdiff_t AddedTokens::Trie::longest(std::string_view s, size_t& length) const {
  ptrdiff_t found = -1;
  size_t at = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    const auto next = nodes[at].next.find(static_cast<unsigned char>(s[i]));
    if (next == nodes[at].next.end()) break;
    at = next->second;
    if (nodes[at].token >= 0) {
      found = nodes[at].token;
      length = i + 1;
    }
  }
  return found;
}

Result<AddedTokens> AddedTokens::make(const std::vector<formats::AddedToken>& tokens,
                                      const TextMap<int32_t>& vocabulary, const Normalizer& normalizer) {
  AddedTokens out;
  out.tokens_ = tokens;
  TextMap<int64_t> seen;
  int64_t largest = -1;
  const auto size = static_cast<int64_t>(vocabulary.size());
  for (const auto& t : tokens) {
    const auto known = vocabulary.find(t.content);
    const int64_t id = known != vocabulary.end() ? known->second : std::max(size, largest + 1);
    if (t.id != id)
      return fail(Code::corrupt, "added_tokens: '{}' has id {}, but is number {} of the vocabulary",
                  t.content, t.id, id);
    if (!seen.emplace(t.content, id).second)
      return fail(Code::corrupt, "added_tokens: '{}' is there twice", t.content);
    largest = std::max(largest, id);
  }
  // Of two tokens that normalize to the same text, a special one wins, then the first.
  for (const bool special : {true, false})
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto& t = tokens[i];
      if (t.special == special)
        out.tries_[t.normalized].insert(t.normalized ? normalizer(t.content) : t.content, i);
    }
  return out;
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text, bool normalized,
                                                  bool specials) const {
  std::vector<Part> parts;
  const Trie& trie = tries_[normalized];
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    const ptrdiff_t found =
        trie.begins[static_cast<unsigned char>(text[at])] ? trie.longest(text.substr(at), length) : -1;
    if (found < 0) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + length;
    at = end;
    const auto& token = tokens_[static_cast<size_t>(found)];
    if (token.special && !specials) continue;
    if (token.single_word && (ends_with_word(text.substr(0, begin)) || begins_with_word(text.substr(end))))
      continue;
    if (token.lstrip) begin = std::max(without_space_at_end(text.substr(0, begin)), done);
    if (token.rstrip) end += space_at_begin(text.substr(end));
    if (done < begin) parts.push_back({done, begin, -1});
    parts.push_back({begin, end, static_cast<int32_t>(token.id)});
    done = end;
  }
  if (done < text.size()) parts.push_back({done, text.size(), -1});
  return parts;
}

}  // namespace weft::io
