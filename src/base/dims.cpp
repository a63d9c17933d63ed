#include "base/dims.h"

#include <charconv>

#include "base/shown.h"

namespace weft {
namespace {

constexpr uint64_t kMaxMagnitude = uint64_t{1} << 61;  // sums of two fit the 63 bits of a Dim
constexpr uint64_t kMaxExpanded = 16384;               // characters of the expanded form
constexpr size_t kMaxText = 1024;
constexpr size_t kMaxSymbols = 1024;  // lookups are linear
constexpr int kMaxDepth = 48;         // below the limit of parse_dim, so this one reports the error

bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Upper bounds on every coefficient and value that Dim can meet, on its expanded terms and text, and on
/// nested parentheses in that text: a quotient has two, around the dividend and as a factor.
struct Measure {
  uint64_t magnitude = 0;
  uint64_t terms = 1;
  uint64_t expanded = 1;
  int nested = 0;
};

/// Walks the grammar of parse_dim, but computes a Measure:
/// sum := product ('+' product)*   product := factor (('*' | '//') factor)*
class Ruler {
 public:
  Ruler(std::string_view text, std::span<const Symbol> symbols) : text_(text), symbols_(symbols) {}

  Status check() {
    if (text_.empty() || text_.size() > kMaxText)
      return invalid("a dimension of {} characters; allowed are 1 to {}", text_.size(), kMaxText);
    WEFT_TRY(const Measure all, sum());
    if (at_ != text_.size())
      return invalid("unexpected '{}' in dimension '{}'", shown(text_.substr(at_)), shown(text_));
    return within(all);
  }

 private:
  bool take(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  Status within(const Measure& m) const {
    if (m.magnitude > kMaxMagnitude)
      return invalid("dimension '{}' may leave the range of 2^61", shown(text_));
    if (m.expanded > kMaxExpanded) return invalid("dimension '{}' expands to too many terms", shown(text_));
    return m.nested < kMaxDepth ? Status() : too_deep();
  }
  Status too_deep() const { return invalid("dimension '{}' is nested too deeply", shown(text_)); }
  Result<Measure> sum() {
    if (++depth_ > kMaxDepth) return too_deep();
    WEFT_TRY(Measure m, product());
    while (take("+")) {
      WEFT_TRY(const Measure more, product());
      m = {m.magnitude + more.magnitude, m.terms + more.terms, m.expanded + more.expanded,
           std::max(m.nested, more.nested)};
      WEFT_CHECK(within(m));
    }
    --depth_;
    return m;
  }
  Result<Measure> product() {
    WEFT_TRY(Measure m, factor());
    for (;;) {
      if (take("//")) {
        WEFT_TRY([[maybe_unused]] const Measure by, factor());
        m = {m.magnitude + 1, m.terms + 1, m.expanded + 24, m.nested + 2};
      } else if (take("*")) {
        WEFT_TRY(const Measure by, factor());
        // Both sides passed within(), so only the product of the magnitudes can overflow.
        if (__builtin_mul_overflow(m.magnitude, by.magnitude, &m.magnitude)) m.magnitude = ~uint64_t{0};
        m.expanded = m.expanded * by.terms + by.expanded * m.terms;
        m.terms *= by.terms;
        m.nested = std::max(m.nested, by.nested);
      } else {
        return m;
      }
      WEFT_CHECK(within(m));
    }
  }
  Result<Measure> factor() {
    if (take("(")) {
      WEFT_TRY(const Measure m, sum());
      if (!take(")")) return invalid("missing ')' in dimension '{}'", shown(text_));
      return m;
    }
    if (take("max(")) return maximum();
    if (at_ < text_.size() && begins_name(text_[at_])) return symbol();
    return number();
  }
  Result<Measure> maximum() {
    WEFT_TRY(const Measure a, sum());
    if (!take(",")) return invalid("missing ',' in dimension '{}'", shown(text_));
    WEFT_TRY(const Measure b, sum());
    if (!take(")")) return invalid("missing ')' in dimension '{}'", shown(text_));
    return Measure{std::max(a.magnitude, b.magnitude), std::max(a.terms, b.terms),
                   a.expanded + b.expanded + 6, std::max(a.nested, b.nested) + 1};
  }
  Result<Measure> number() {
    int64_t value = 0;
    const auto [end, bad] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (bad != std::errc())
      return invalid("no number at '{}' in dimension '{}'", shown(text_.substr(at_)), shown(text_));
    at_ = static_cast<size_t>(end - text_.data());
    const uint64_t size = value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
    const Measure m{std::max<uint64_t>(size, 1), 1, 20};
    WEFT_CHECK(within(m));
    return m;
  }
  Result<Measure> symbol() {
    size_t n = 0;
    while (at_ + n < text_.size() && (begins_name(text_[at_ + n]) || is_digit(text_[at_ + n]))) ++n;
    const auto word = text_.substr(at_, n);
    for (const auto& s : symbols_) {
      if (s.name != word) continue;
      at_ += n;
      const Measure m{static_cast<uint64_t>(std::max<int64_t>(s.max, 1)), 1, n + 1};
      WEFT_CHECK(within(m));
      return m;
    }
    return invalid("unknown symbol '{}' in dimension '{}'", shown(word), shown(text_));
  }

  std::string_view text_;
  std::span<const Symbol> symbols_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Status check_symbols(std::span<const Symbol> symbols) {
  if (symbols.size() > kMaxSymbols) return invalid("{} symbols; allowed are {}", symbols.size(), kMaxSymbols);
  for (size_t i = 0; i < symbols.size(); ++i) {
    const Symbol& s = symbols[i];
    WEFT_CHECK(check_symbol(s));
    for (size_t k = 0; k < i; ++k)
      if (symbols[k].name == s.name) return invalid("symbol {} is listed twice", s.name);
  }
  return {};
}

Result<Dim> read_dim(std::string_view text, std::span<const Symbol> symbols) {
  WEFT_CHECK(Ruler(text, symbols).check());
  return parse_dim(text, symbols);
}

Result<Shape> read_shape(std::string_view text, std::span<const Symbol> symbols) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']')
    return invalid("'{}' is no list of dimensions; wanted one like [4, batch]", shown(text));
  Shape shape;
  std::string_view rest = text.substr(1, text.size() - 2);
  while (!rest.empty()) {
    const size_t n = rest.find(", ");  // a dimension itself holds no ", ": "max(a,b)"
    WEFT_TRY(const Dim d, read_dim(rest.substr(0, n), symbols));
    shape.push_back(d);
    if (n == std::string_view::npos) break;
    rest = rest.substr(n + 2);
    if (rest.empty()) return invalid("'{}' ends in a comma", shown(text));
  }
  return shape;
}

Result<TensorType> read_type(std::string_view text, std::span<const Symbol> symbols) {
  const auto dtype = dtype_from_name(text.substr(0, text.find('[')));
  if (!dtype) return invalid("unknown element type in '{}'", shown(text));
  WEFT_TRY(Shape shape, read_shape(text.substr(std::string_view(name(*dtype)).size()), symbols));
  return TensorType{*dtype, std::move(shape)};
}

}  // namespace weft
