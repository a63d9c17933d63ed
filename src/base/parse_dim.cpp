#include <algorithm>
#include <charconv>

#include "base/shown.h"
#include "weft/shape.h"

// Dimensions as text.
namespace weft {
namespace {

constexpr size_t kMaxName = 64;
constexpr int64_t kMaxBound = int64_t{1} << 61;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_letter_or_digit(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

// Symbols of DimParser; "max" is a function there.
bool is_symbol_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && is_letter(name[0]) && name != "max" &&
         std::all_of(name.begin(), name.end(), is_letter_or_digit);
}

// sum := product ('+' product)*   product := factor (('*' | '//') factor)*
class DimParser {
 public:
  DimParser(std::string_view text, std::span<const Symbol> symbols) : text_(text), symbols_(symbols) {}

  Result<Dim> parse() {
    WEFT_TRY(const Dim d, sum());
    if (at_ != text_.size())
      return invalid("unexpected '{}' in dimension '{}'", shown(text_.substr(at_)), shown(text_));
    return d;
  }

 private:
  bool take(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  Result<Dim> sum() {
    if (++depth_ > 64) return invalid("dimension '{}' is nested too deeply", shown(text_));
    WEFT_TRY(Dim d, product());
    while (take("+")) {
      WEFT_TRY(const Dim more, product());
      d = d + more;
    }
    --depth_;
    return d;
  }
  Result<Dim> product() {
    WEFT_TRY(Dim d, factor());
    for (;;) {
      if (take("//")) {
        WEFT_TRY(const Dim by, factor());
        if (!by.is_const() || by.value() <= 0)
          return invalid("'//' wants a positive integer in '{}'", shown(text_));
        d = floor_div(d, by.value());
      } else if (take("*")) {
        WEFT_TRY(const Dim by, factor());
        d = d * by;
      } else {
        return d;
      }
    }
  }
  Result<Dim> factor() {
    if (take("(")) {
      WEFT_TRY(const Dim d, sum());
      if (!take(")")) return invalid("missing ')' in dimension '{}'", shown(text_));
      return d;
    }
    if (take("max(")) {
      WEFT_TRY(const Dim a, sum());
      if (!take(",")) return invalid("missing ',' in dimension '{}'", shown(text_));
      WEFT_TRY(const Dim b, sum());
      if (!take(")")) return invalid("missing ')' in dimension '{}'", shown(text_));
      return max(a, b);
    }
    int64_t number = 0;
    const auto [end, bad] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (bad == std::errc()) {
      if (number < Dim::kMin || number > Dim::kMax)
        return invalid("{} is more than a dimension holds in '{}'", number, shown(text_));
      at_ = static_cast<size_t>(end - text_.data());
      return Dim(number);
    }
    size_t n = 0;
    while (at_ + n < text_.size() && is_letter_or_digit(text_[at_ + n])) ++n;
    const auto word = text_.substr(at_, n);
    for (const auto& s : symbols_)
      if (s.name == word) {
        WEFT_CHECK(check_symbol(s));
        at_ += n;
        return Dim::symbol(s.name, s.min, s.max);
      }
    return invalid("unknown symbol '{}' in dimension '{}'", shown(word), shown(text_));
  }

  std::string_view text_;
  std::span<const Symbol> symbols_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Status check_symbol(const Symbol& s) {
  if (!is_symbol_name(s.name))
    return invalid(
        "symbol '{}' has no name that a dimension can spell; wanted a letter or '_', then at most {} "
        "letters, digits or '_', and not 'max'",
        s.name.substr(0, kMaxName), kMaxName - 1);
  if (s.min < 0 || s.min > s.max || s.max > kMaxBound)
    return invalid("symbol {} is in {}..{}; wanted 0 <= min <= max <= 2^61", s.name, s.min, s.max);
  return {};
}

Result<Dim> parse_dim(std::string_view text, std::span<const Symbol> symbols) {
  return DimParser(text, symbols).parse();
}

}  // namespace weft
