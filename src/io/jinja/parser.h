#pragma once
#include <algorithm>

#include "io/jinja/lexer.h"
#include "io/jinja/scope.h"

namespace weft::io::jinja {

/// Reads tokens one after the other.
class Reader {
 public:
  explicit Reader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool is(Token::Kind kind, std::string_view text) const { return now().kind == kind && now().text == text; }
  bool is_op(std::string_view text) const { return is(Token::Kind::op, text); }
  bool is_name(std::string_view text) const { return is(Token::Kind::name, text); }
  bool takes_op(std::string_view text) { return is_op(text) && (take(), true); }
  bool takes_name(std::string_view text) { return is_name(text) && (take(), true); }
  void expect_op(std::string_view text) {
    if (!takes_op(text)) throw wanted(fmt::format("'{}'", text));
  }
  std::string expect_name() {
    if (now().kind != Token::Kind::name) throw wanted("a name");
    return take().text;
  }
  void expect(Token::Kind kind, const char* what) {
    if (now().kind != kind) throw wanted(what);
    take();
  }

  Error wanted(const std::string& what) const {
    const bool word = !now().text.empty() && now().kind != Token::Kind::data;
    return Error(fail(Code::corrupt, "chat template, line {}: wanted {}, got {}", now().line, what,
                      word ? "'" + now().text + "'" : "the end"));
  }
  Error unsupported(const std::string& what) const {
    return Error(fail(Code::unsupported, "chat template, line {}: {} is not supported", now().line, what));
  }

  /// The nesting depth of what `read` parses.
  template <class Read>
  int depth_of(Read read) {
    const int outside = std::exchange(deepest_, depth_);
    read();
    const int within = deepest_ - depth_;
    deepest_ = std::max(deepest_, outside);
    return within;
  }

  /// Counts nesting levels, each of which takes stack.
  class Deeper {
   public:
    explicit Deeper(Reader& reader) : reader_(reader) {
      if (++reader_.depth_ > 200) throw reader_.unsupported("an expression this deep");
      reader_.deepest_ = std::max(reader_.deepest_, reader_.depth_);
    }
    ~Deeper() { --reader_.depth_; }
    Deeper(const Deeper&) = delete;

   private:
    Reader& reader_;
  };

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0, deepest_ = 0;
};

/// `a if b else c`, and everything of higher precedence.
Expression expression(Reader& r);
/// Without the `if`, for the list of a loop.
Expression disjunction(Reader& r);
/// One expression, or several with commas between: a list.
Expression expressions(Reader& r);

}  // namespace weft::io::jinja
