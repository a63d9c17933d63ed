#include "io/jinja/lexer.h"

#include <algorithm>
#include <cctype>

#include "weft/status.h"

namespace weft::io::jinja {
namespace {

using Kind = Token::Kind;

class Lexer {
 public:
  explicit Lexer(std::string source) : s_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < s_.size()) {
      const size_t tag = next_tag();
      data(tag);
      if (at_ >= s_.size()) break;
      const char kind = s_[at_ + 1];
      at_ += 2;
      const bool marked = at_ < s_.size() && (s_[at_] == '-' || s_[at_] == '+');
      at_ += marked;
      if (kind == '#') {
        comment();
      } else {
        add(kind == '%' ? Kind::begin_block : Kind::begin_print, "");
        expression(kind == '%' ? "%}" : "}}");
      }
    }
    add(Kind::end, "");
    return std::move(tokens_);
  }

 private:
  Error bad(const std::string& what) const {
    return Error(fail(Code::corrupt, "chat template, line {}: {}", line(), what));
  }
  // Tokens come in order, so lines are counted once.
  int line() const {
    line_ +=
        static_cast<int>(std::count(s_.begin() + static_cast<std::ptrdiff_t>(counted_),
                                    s_.begin() + static_cast<std::ptrdiff_t>(std::max(counted_, at_)), '\n'));
    counted_ = std::max(counted_, at_);
    return line_;
  }
  void add(Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), line()}); }

  size_t next_tag() const {
    for (size_t i = at_; (i = s_.find('{', i)) != s_.npos; ++i)
      if (i + 1 < s_.size() && (s_[i + 1] == '{' || s_[i + 1] == '%' || s_[i + 1] == '#')) return i;
    return s_.size();
  }

  // The text before the next tag, without the white space that the tag strips.
  void data(size_t tag) {
    std::string_view text = std::string_view(s_).substr(at_, tag - at_);
    if (tag < s_.size()) {
      const char mark = tag + 2 < s_.size() ? s_[tag + 2] : ' ';
      if (mark == '-') {
        while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
      } else if (mark != '+' && s_[tag + 1] != '{') {
        const size_t begin = text.rfind('\n') == text.npos ? 0 : text.rfind('\n') + 1;
        const bool own_line = begin > 0 || at_ == 0 || s_[at_ - 1] == '\n';
        if (own_line && text.substr(begin).find_first_not_of(" \t\f\v\r") == text.npos)
          text = text.substr(0, begin);
      }
    }
    if (!text.empty()) add(Kind::data, std::string(text));
    at_ = tag;
  }

  // After a tag: strips all white space, or one line end after a block or a comment.
  void close(size_t end, bool takes_line_end) {
    const char mark = s_[end - 1];
    at_ = end + 2;
    if (mark == '-') {
      while (at_ < s_.size() && std::isspace(static_cast<unsigned char>(s_[at_]))) ++at_;
    } else if (takes_line_end && mark != '+' && at_ < s_.size() && s_[at_] == '\n') {
      ++at_;
    }
  }

  void comment() {
    const size_t end = s_.find("#}", at_);
    if (end == s_.npos) throw bad("a comment is not closed");
    close(end, true);
  }

  void expression(std::string_view closing) {
    std::string open;
    for (;;) {
      while (at_ < s_.size() && std::isspace(static_cast<unsigned char>(s_[at_]))) ++at_;
      if (at_ >= s_.size()) throw bad(fmt::format("a tag is not closed by {}", closing));
      const size_t marked = s_[at_] == '-' || s_[at_] == '+' ? 1 : 0;
      if (open.empty() && std::string_view(s_).substr(at_ + marked).starts_with(closing)) {
        add(closing == "%}" ? Kind::end_block : Kind::end_print, "");
        return close(at_ + marked, closing == "%}");
      }
      token(open);
    }
  }

  void token(std::string& open) {
    const char c = s_[at_];
    const auto letter = [](char x) { return std::isalpha(static_cast<unsigned char>(x)) || x == '_'; };
    const auto digit = [](char x) { return std::isdigit(static_cast<unsigned char>(x)) != 0; };
    const size_t begin = at_;
    if (letter(c)) {
      while (at_ < s_.size() && (letter(s_[at_]) || digit(s_[at_]))) ++at_;
      return add(Kind::name, s_.substr(begin, at_ - begin));
    }
    if (digit(c)) {
      const auto digits = [&] {
        while (at_ < s_.size() && digit(s_[at_])) ++at_;
      };
      const auto digit_at = [&](size_t i) { return i < s_.size() && digit(s_[i]); };
      digits();
      bool real = at_ < s_.size() && s_[at_] == '.' && digit_at(at_ + 1);
      if (real) ++at_, digits();
      if (at_ < s_.size() && (s_[at_] == 'e' || s_[at_] == 'E')) {
        const size_t sign = at_ + 1 < s_.size() && (s_[at_ + 1] == '+' || s_[at_ + 1] == '-') ? 1 : 0;
        if (digit_at(at_ + 1 + sign)) at_ += 1 + sign, digits(), real = true;
      }
      return add(real ? Kind::real : Kind::integer, s_.substr(begin, at_ - begin));
    }
    if (c == '"' || c == '\'') return string(c);
    for (const std::string_view op : {"**", "//", "==", "!=", "<=", ">="})
      if (std::string_view(s_).substr(at_).starts_with(op)) return at_ += 2, add(Kind::op, std::string(op));
    if (std::string_view("+-*/%~<>=.,:|()[]{}").find(c) == std::string_view::npos)
      throw bad(fmt::format("'{}' has no meaning here", c));
    if (c == '(' || c == '[' || c == '{') open += c;
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != (c == ')' ? '(' : c == ']' ? '[' : '{'))
        throw bad(fmt::format("'{}' closes nothing", c));
      open.pop_back();
    }
    ++at_;
    add(Kind::op, std::string(1, c));
  }

  void string(char quote) {
    std::string text;
    for (++at_; at_ < s_.size() && s_[at_] != quote; ++at_) {
      if (s_[at_] != '\\' || at_ + 1 >= s_.size()) {
        text += s_[at_];
        continue;
      }
      const char c = s_[++at_];
      constexpr std::string_view kLetters = "nrtbfv0\\'\"", kMeant("\n\r\t\b\f\v\0\\'\"", 10);
      if (const size_t i = kLetters.find(c); i != kLetters.npos)
        text += kMeant[i];
      else if (c == '\n')
        continue;
      else if (c == 'x' || c == 'u' || c == 'U' || c == 'N')
        throw bad(fmt::format("'\\{}' in a string is not supported", c));
      else
        (text += '\\') += c;
    }
    if (at_ >= s_.size()) throw bad("a string is not closed");
    ++at_;
    add(Kind::string, std::move(text));
  }

  std::string s_;
  size_t at_ = 0;
  std::vector<Token> tokens_;
  mutable int line_ = 1;
  mutable size_t counted_ = 0;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source) {
  std::string lines;
  for (size_t i = 0; i < source.size(); ++i)
    if (source[i] != '\r')
      lines += source[i];
    else if (i + 1 == source.size() || source[i + 1] != '\n')
      lines += '\n';
  if (lines.ends_with('\n')) lines.pop_back();
  return Lexer(std::move(lines)).run();
}

}  // namespace weft::io::jinja
