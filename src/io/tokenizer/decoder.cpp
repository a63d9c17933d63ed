#include "io/tokenizer/decoder.h"

#include <cctype>

#include "io/tokenizer/byte_alphabet.h"
#include "io/utf8.h"

namespace weft::io {
namespace {

using formats::TokenDecoder;
using Step = TokenDecoding::Step;

/// The last step: joins tokens, perhaps with spaces.
class Join : public Step {
 public:
  Join(std::string& out, bool spaces) : out_(&out), spaces_(spaces) {}
  void put(std::string_view part) override {
    begin();
    *out_ += part;
  }
  void end() override {
    begin();
    within_ = false;
  }
  void finish() override {}

 private:
  void begin() {
    if (!within_ && spaces_ && !first_) *out_ += ' ';
    within_ = true;
    first_ = false;
  }
  std::string* out_;
  bool spaces_, first_ = true, within_ = false;
};

/// Joins all tokens.
class Fuse : public Step {
 public:
  void put(std::string_view part) override { next->put(part); }
  void end() override {}
  void finish() override {
    next->end();
    next->finish();
  }
};

/// More bytes than most tokens have: strings of this capacity rarely grow.
constexpr size_t kLongToken = 1024;

/// A step that sees whole tokens.
class WholeTokens : public Step {
 public:
  WholeTokens() { token_.reserve(kLongToken); }
  void put(std::string_view part) override { token_ += part; }
  void end() override {
    take(token_);
    token_.clear();
  }
  void finish() override { next->finish(); }

 protected:
  virtual void take(std::string_view token) = 0;

 private:
  std::string token_;
};

/// Joins all tokens, which are in the alphabet of bytes.
class FromBytes : public WholeTokens {
 public:
  FromBytes() { bytes_.reserve(kLongToken); }
  void finish() override {
    if (!bytes_.empty()) next->put(repair_utf8(bytes_));
    bytes_.clear();
    next->end();
    next->finish();
  }

 protected:
  void take(std::string_view token) override {
    ByteAlphabet::get().append_bytes(token, bytes_);
    std::string_view rest = bytes_;
    while (!rest.empty()) {
      const auto c = decode_utf8(rest);
      if (c.cut) break;
      next->put(c.valid ? rest.substr(0, c.length) : "\xEF\xBF\xBD");
      rest.remove_prefix(c.length);
    }
    bytes_.erase(0, bytes_.size() - rest.size());
  }

 private:
  std::string bytes_;
};

class Replace : public WholeTokens {
 public:
  Replace(std::string from, std::string to)
      : from_(std::move(from)), to_(std::move(to)), character_(decode_utf8(from_).length == from_.size()) {}
  // Parts are whole characters, so no character is split.
  void put(std::string_view part) override { character_ ? hand_on(part) : WholeTokens::put(part); }

 protected:
  void take(std::string_view token) override {
    hand_on(token);
    next->end();
  }

 private:
  void hand_on(std::string_view text) {
    for (size_t at = 0; (at = text.find(from_)) != text.npos; text.remove_prefix(at + from_.size())) {
      next->put(text.substr(0, at));
      next->put(to_);
    }
    next->put(text);
  }
  std::string from_, to_;
  bool character_;
};

/// Tokens `<0xE2>` are bytes. A run of them that is not UTF-8 is as many U+FFFD.
class ByteFallback : public WholeTokens {
 public:
  void finish() override {
    flush();
    next->finish();
  }

 protected:
  void take(std::string_view token) override {
    const auto hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
    if (token.size() == 6 && token.starts_with("<0x") && token[5] == '>' && hex(token[3]) && hex(token[4])) {
      bytes_ += static_cast<char>(std::stoi(std::string(token.substr(3, 2)), nullptr, 16));
      return;
    }
    flush();
    next->put(token);
    next->end();
  }

 private:
  void flush() {
    if (bytes_.empty()) return;
    const bool valid = is_utf8(bytes_);
    for (size_t i = 0; i < (valid ? 1 : bytes_.size()); ++i) {
      next->put(valid ? std::string_view(bytes_) : "\xEF\xBF\xBD");
      next->end();
    }
    bytes_.clear();
  }
  std::string bytes_;
};

/// Strips a character up to `start` and `stop` times from the two ends of each token.
class Strip : public Step {
 public:
  explicit Strip(const TokenDecoder& d) : content_(d.content), start_(d.start), stop_(d.stop) {}
  void put(std::string_view part) override {
    while (!part.empty()) {
      const size_t length = decode_utf8(part).length;
      const auto c = part.substr(0, length);
      part.remove_prefix(length);
      if (c == content_) {
        leading_&& taken_ < start_ ? ++taken_ : ++held_;
        if (stop_ == 0) release(held_);
      } else {
        leading_ = false;
        release(held_);
        next->put(c);
      }
    }
  }
  void end() override {
    release(held_ - std::min(held_, stop_));
    held_ = taken_ = 0;
    leading_ = true;
    next->end();
  }
  void finish() override { next->finish(); }

 private:
  void release(int64_t n) {
    for (; n > 0; --n, --held_) next->put(content_);
  }
  std::string content_;
  int64_t start_, stop_;
  int64_t taken_ = 0, held_ = 0;  // of this token: stripped from its front; content that may be its end
  bool leading_ = true;
};

/// Marks become spaces; those of the first token are dropped if encoding added one there.
class Metaspace : public Step {
 public:
  explicit Metaspace(const TokenDecoder& d)
      : mark_(d.replacement), drop_(d.scheme != formats::PrependScheme::never) {}
  void put(std::string_view part) override {
    for (size_t at = 0; (at = part.find(mark_)) != part.npos; part.remove_prefix(at + mark_.size())) {
      next->put(part.substr(0, at));
      if (!drop_) next->put(" ");
    }
    next->put(part);
  }
  void end() override {
    drop_ = false;
    next->end();
  }
  void finish() override { next->finish(); }

 private:
  std::string mark_;
  bool drop_;
};

/// Tokens that go on with a word lose their prefix, others get a space before them.
class WordPieces : public WholeTokens {
 public:
  explicit WordPieces(const TokenDecoder& d) : prefix_(d.prefix), cleanup_(d.cleanup) {}

 protected:
  void take(std::string_view token) override {
    std::string out(token);
    if (!std::exchange(first_, false)) {
      if (token.starts_with(prefix_))
        out.erase(0, prefix_.size());
      else
        out.insert(0, " ");
    }
    if (cleanup_) clean(out);
    next->put(out);
    next->end();
  }

 private:
  // Spaces that English has not, as `tokenizers` removes them from each token.
  static void clean(std::string& text) {
    constexpr std::pair<std::string_view, std::string_view> kReplacements[] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : kReplacements)
      for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
        text.replace(at, from.size(), to);
  }
  std::string prefix_;
  bool cleanup_, first_ = true;
};

std::unique_ptr<Step> make(const TokenDecoder& d) {
  switch (d.kind) {
    case TokenDecoder::Kind::byte_level: return std::make_unique<FromBytes>();
    case TokenDecoder::Kind::replace: return std::make_unique<Replace>(d.pattern, d.content);
    case TokenDecoder::Kind::byte_fallback: return std::make_unique<ByteFallback>();
    case TokenDecoder::Kind::strip: return std::make_unique<Strip>(d);
    case TokenDecoder::Kind::metaspace: return std::make_unique<Metaspace>(d);
    case TokenDecoder::Kind::word_piece: return std::make_unique<WordPieces>(d);
    case TokenDecoder::Kind::fuse: break;
  }
  return std::make_unique<Fuse>();
}

}  // namespace

TokenDecoding::TokenDecoding(const std::optional<std::vector<TokenDecoder>>& decoders)
    : text_(std::make_unique<std::string>()) {
  text_->reserve(kLongToken);
  if (decoders)
    for (const auto& d : *decoders) steps_.push_back(make(d));
  steps_.push_back(std::make_unique<Join>(*text_, !decoders));
  for (size_t i = 0; i + 1 < steps_.size(); ++i) steps_[i]->next = steps_[i + 1].get();
}

void TokenDecoding::push(std::string_view token) {
  steps_.front()->put(token);
  steps_.front()->end();
}

void TokenDecoding::finish() { steps_.front()->finish(); }

}  // namespace weft::io
