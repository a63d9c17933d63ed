#include <algorithm>
#include <cstring>

#include "io/tokenizer/pattern.h"

namespace weft::io {
namespace {

// Inside a class: White_Space. PCRE2's own \s has U+180E too.
constexpr const char* kSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
// Inside a class: word characters of Oniguruma, apart from newer characters.
constexpr const char* kWord = R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149})"
                              R"(\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
// Outside of a class, also superscript digits and fractions of Latin-1.
constexpr const char* kWordOutside = R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";

// The newer characters of a category of one or two letters.
std::string newer(std::string_view category) {
  std::string out;
  for (const auto& c : newer_characters())
    if (std::string_view(c.category).starts_with(category))
      out += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", static_cast<uint32_t>(c.first),
                         static_cast<uint32_t>(c.last));
  return out;
}

bool among(char c, std::string_view set) { return set.find(c) != set.npos; }

/// Translates an expression for PCRE2, from left to right.
class Translation {
 public:
  explicit Translation(std::string_view from) : from_(from) {}

  Result<std::string> run() {
    while (at_ < from_.size()) WEFT_CHECK(step());
    close();
    return std::move(out_);
  }

 private:
  bool sees(std::string_view text) const { return from_.substr(at_).starts_with(text); }
  void copy(size_t n) {
    out_ += from_.substr(at_, n);
    at_ += n;
  }
  Status refuse(std::string_view what) const {
    return fail(Code::unsupported, "the expression '{}': {} at byte {} is not supported", from_, what, at_);
  }

  Status step() {
    const char c = from_[at_];
    if (c == '\\') return escape();
    if (!in_class_ && c == '[') return open_class();
    if (in_class_ && c == ']') {
      in_class_ = false;
    } else if (in_class_ && c == '[') {
      if (!sees("[:")) return refuse("a class within a class");
      const size_t end = from_.find(":]", at_);
      if (end == std::string_view::npos) return refuse("'[:' without ':]'");
      return refuse("a named class");
    } else if (in_class_ && sees("&&")) {
      return refuse("an intersection '&&'");
    } else if (!in_class_ && sees("(?")) {
      return group();
    } else if (!in_class_ && c == '(') {
      options_.push_back(0);
    } else if (!in_class_ && c == ')') {
      close();
    } else if (!in_class_ && is_at_most()) {
      out_ += "{0";  // without the 0, PCRE2 reads it as text
      ++at_;
    } else if (!in_class_ && c == '}' && at_ + 1 < from_.size() && among(from_[at_ + 1], "+?")) {
      return refuse("a repetition of a counted repetition");  // greedy there, possessive or lazy here
    }
    copy(1);
    return {};
  }

  // {,n}
  bool is_at_most() const {
    if (!sees("{,")) return false;
    const size_t end = from_.find_first_not_of("0123456789", at_ + 2);
    return end != std::string_view::npos && end > at_ + 2 && from_[end] == '}';
  }

  // At the end of a group or of the expression: closes groups opened for options in it.
  void close() {
    out_.append(options_.back(), ')');
    if (options_.size() > 1) options_.pop_back();
  }

  Status open_class() {
    in_class_ = true;
    copy(1);
    if (sees("^")) copy(1);
    if (sees("]")) return refuse("an empty class");
    return {};
  }

  // Options mean different things: (?m) of Oniguruma is (?s) of PCRE2.
  Status group() {
    if (sees("(?i)")) {  // its scope is the rest of the group: a(?i)b|c is a(?i:b|c)
      out_ += "(?i:";
      at_ += 4;
      ++options_.back();
      return {};
    }
    for (const char* same : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"})
      if (sees(same)) return options_.push_back(0), copy(std::strlen(same)), Status();
    return refuse("this kind of group");
  }

  void one_of(std::string_view inner, bool negated) {
    if (in_class_)
      out_ += inner;
    else
      out_ += fmt::format("[{}{}]", negated ? "^" : "", inner);
  }

  Status escape() {
    if (at_ + 1 >= from_.size()) return refuse("'\\' at the end");
    const char c = from_[at_ + 1];
    const bool negated = c == 'S' || c == 'W' || c == 'D';
    if (c == 'p' || c == 'P') return property();
    if (among(c, "sSwWdD")) {
      // \S in a class is PCRE2's, and U+180E.
      if (negated && in_class_) {
        if (c != 'S') return refuse("a negated class within a class");
        copy(2);
        out_ += "\\x{180e}";
        return {};
      }
      at_ += 2;
      const char lower = negated ? static_cast<char>(c - 'A' + 'a') : c;
      if (lower == 's') one_of(kSpace, negated);
      if (lower == 'd') one_of("\\p{Nd}" + newer("Nd"), negated);
      if (lower == 'w')
        one_of((in_class_ ? "" : kWordOutside) + std::string(kWord) + newer("L") + newer("M") + newer("Nd") +
                   newer("Nl") + newer("Pc"),
               negated);
      return {};
    }
    const bool same = among(c, "nrtfvaexu0bBAzZ") ? c != 'u' && c != 'v' && !(in_class_ && c == 'b')
                                                  : !std::isalnum(static_cast<unsigned char>(c));
    if (!same) return refuse("this escape");
    copy(2);
    return {};
  }

  // \p{L}, with the newer characters of the category.
  Status property() {
    const bool upper = from_[at_ + 1] == 'P';
    const size_t end = from_.find('}', at_);
    if (at_ + 2 >= from_.size() || from_[at_ + 2] != '{' || end == std::string_view::npos)
      return refuse("a property without braces");
    std::string_view name = from_.substr(at_ + 3, end - at_ - 3);
    const bool caret = name.starts_with('^');
    name.remove_prefix(caret);
    const bool negated = upper != caret;
    if (negated && in_class_) return refuse("a negated property within a class");
    at_ = end + 1;
    one_of(fmt::format("\\p{{{}}}{}", name, name.size() <= 2 ? newer(name) : ""), negated);
    return {};
  }

  std::string_view from_;
  size_t at_ = 0;
  bool in_class_ = false;
  std::vector<size_t> options_ = {
      0};  // groups opened for an option: in all, and in each group around this place
  std::string out_;
};

}  // namespace

Result<std::string> to_pcre2(std::string_view oniguruma) { return Translation(oniguruma).run(); }

}  // namespace weft::io
