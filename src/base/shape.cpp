#include "weft/shape.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>

#include "base/dim_expr.h"

namespace weft {
namespace detail {

namespace {

// The key is the identity of an expression. The text is not: two programs may bound one `batch` differently.
const DimExpr* intern(DimExpr e) {
  static std::mutex mutex;
  static auto* table = new std::map<std::string, std::unique_ptr<DimExpr>>;  // lives as long as the process
  std::lock_guard lock(mutex);
  auto& slot = (*table)[e.key];
  if (!slot) slot = std::make_unique<DimExpr>(std::move(e));
  return slot.get();
}

// Order of atoms and of terms in a printed sum: by text, never by address, so text and file bytes are
// reproducible.
struct ByText {
  bool operator()(const DimExpr* x, const DimExpr* y) const { return x->text < y->text; }
};

Polynomial polynomial(Dim d) {
  if (d.is_const()) return d.value() == 0 ? Polynomial{} : Polynomial{{Monomial{}, d.value()}};
  const auto* e = DimExpr::of(d);
  if (e->kind == DimExpr::Kind::sum) return e->terms;
  return {{Monomial{e}, 1}};
}

std::string monomial_text(const Monomial& m) {
  std::string s;
  for (const auto* atom : m) {
    // a*(b//2) is not a*b//2, which divides the product.
    const bool quotient = !s.empty() && atom->kind == DimExpr::Kind::floor_div;
    s += (s.empty() ? "" : "*") + (quotient ? "(" + atom->text + ")" : atom->text);
  }
  return s;
}

std::string key_of(Dim d) { return d.is_const() ? d.text() : DimExpr::of(d)->key; }

// Bounds saturate: such a size is refused when its bytes are counted.
int64_t bounded_product(int64_t a, int64_t b) {
  int64_t y;
  if (!__builtin_mul_overflow(a, b, &y)) return y;
  return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}
int64_t bounded_sum(int64_t a, int64_t b) {
  int64_t y;
  if (!__builtin_add_overflow(a, b, &y)) return y;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

std::pair<int64_t, int64_t> product_bounds(const Monomial& m) {
  int64_t lo = 1, hi = 1;
  for (const auto* atom : m)  // a quotient may be negative: (batch-100)//4
    std::tie(lo, hi) = std::minmax({bounded_product(lo, atom->min), bounded_product(lo, atom->max),
                                    bounded_product(hi, atom->min), bounded_product(hi, atom->max)});
  return {lo, hi};
}

Dim from_polynomial(Polynomial p) {
  std::erase_if(p, [](const auto& t) { return t.second == 0; });
  if (p.empty()) return Dim(0);
  if (p.size() == 1) {
    const auto& [m, k] = *p.begin();
    if (m.empty()) return Dim(k);
    if (m.size() == 1 && k == 1) return DimExpr::wrap(m[0]);
  }
  DimExpr e{.kind = DimExpr::Kind::sum};
  std::map<std::string, std::pair<int64_t, const Monomial*>> by_text;
  for (const auto& [m, k] : p) {
    by_text[monomial_text(m)] = {k, &m};
    const auto [lo, hi] = product_bounds(m);
    e.min = bounded_sum(e.min, bounded_product(k, k > 0 ? lo : hi));
    e.max = bounded_sum(e.max, bounded_product(k, k > 0 ? hi : lo));
  }
  for (const auto& [text, term] : by_text) {
    if (text.empty()) continue;
    const int64_t k = term.first;
    e.text += (e.text.empty() ? "" : "+") + text + (k == 1 ? "" : fmt::format("*{}", k));
    for (const auto* atom : *term.second) e.key += atom->key + "*";
    e.key += fmt::format("{}+", k);
  }
  if (const auto c = by_text.find(""); c != by_text.end()) {
    const int64_t k = c->second.first;
    e.text += fmt::format("{}{}", e.text.empty() ? "" : "+", k);
    e.key += std::to_string(k);
  }
  e.key = "(" + e.key + ")";
  e.terms = std::move(p);
  return DimExpr::wrap(intern(std::move(e)));
}

// (x//a + c)//b is (x + a*c)//(a*b), returned as a pair. Nothing for other forms, and for large divisors.
std::optional<std::pair<Dim, int64_t>> dividend_of_nested(Dim d, int64_t divisor) {
  constexpr int64_t kMost = int64_t{1} << 30;  // a*c stays far within a Dim
  const DimExpr* quotient = nullptr;
  int64_t rest = 0;
  for (const auto& [m, k] : polynomial(d)) {
    if (m.empty()) {
      rest = k;
    } else if (quotient || k != 1 || m.size() != 1 || m[0]->kind != DimExpr::Kind::floor_div) {
      return std::nullopt;
    } else {
      quotient = m[0];
    }
  }
  if (!quotient || std::max({quotient->divisor, divisor, std::abs(rest)}) > kMost) return std::nullopt;
  return std::pair(quotient->a + Dim(quotient->divisor * rest), quotient->divisor * divisor);
}

std::string factor_text(Dim d) {
  const bool sum = !d.is_const() && DimExpr::of(d)->kind == DimExpr::Kind::sum;
  return sum ? "(" + d.text() + ")" : d.text();
}

}  // namespace
}  // namespace detail

using detail::DimExpr;
using detail::Polynomial;

void Dim::raise_too_large(int64_t value) {
  throw Error(invalid("dimension {} is outside of what a dimension holds, {} to {}", value, kMin, kMax));
}

Dim Dim::symbol(std::string_view name, int64_t min, int64_t max) {
  raise_if(check_symbol({std::string(name), min, max}));
  DimExpr e{.kind = DimExpr::Kind::symbol, .name = std::string(name), .min = min, .max = max};
  e.text = e.name;
  e.key = fmt::format("{} in {}..{}", name, min, max);
  return Dim(detail::intern(std::move(e)));
}

std::string Dim::text() const { return is_const() ? std::to_string(value()) : expr()->text; }
std::pair<int64_t, int64_t> Dim::bounds() const { return {expr()->min, expr()->max}; }

Dim operator+(Dim a, Dim b) {
  if (a.is_const() && b.is_const()) return Dim(a.value() + b.value());
  Polynomial p = detail::polynomial(a);
  for (const auto& [m, k] : detail::polynomial(b)) p[m] = Dim(detail::bounded_sum(p[m], k)).value();
  return detail::from_polynomial(std::move(p));
}

Dim operator-(Dim a, Dim b) {
  if (a.is_const() && b.is_const()) return Dim(a.value() - b.value());
  return a + b * Dim(-1);
}

Dim operator*(Dim a, Dim b) {
  if (a.is_const() && b.is_const()) return Dim(detail::bounded_product(a.value(), b.value()));
  Polynomial p;
  const auto pa = detail::polynomial(a), pb = detail::polynomial(b);
  for (const auto& [ma, ka] : pa)
    for (const auto& [mb, kb] : pb) {
      auto m = ma;
      m.insert(m.end(), mb.begin(), mb.end());
      std::sort(m.begin(), m.end(), detail::ByText{});
      int64_t& k = p[std::move(m)];
      k = Dim(detail::bounded_sum(k, detail::bounded_product(ka, kb))).value();  // raises if it is too large
    }
  return detail::from_polynomial(std::move(p));
}

Dim floor_div(Dim a, int64_t divisor) {
  if (divisor == 1) return a;
  if (a.is_const()) {
    const int64_t q = a.value() / divisor;
    return Dim(q - (a.value() % divisor < 0 ? 1 : 0));
  }
  // Terms that the divisor divides leave the division: (16*batch + 3) / 4 = 4*batch + 3/4.
  Polynomial whole, rest;
  for (const auto& [m, k] : detail::polynomial(a)) (k % divisor == 0 ? whole[m] = k / divisor : rest[m] = k);
  const Dim outside = detail::from_polynomial(std::move(whole));
  const Dim inside = detail::from_polynomial(std::move(rest));
  if (inside.is_const()) return outside + floor_div(inside, divisor);
  if (const auto dividend = detail::dividend_of_nested(inside, divisor))
    return outside + floor_div(dividend->first, dividend->second);
  DimExpr e{.kind = DimExpr::Kind::floor_div,
            .min = floor_div(Dim(inside.min()), divisor).value(),
            .max = floor_div(Dim(inside.max()), divisor).value(),
            .a = inside,
            .divisor = divisor};
  e.text = fmt::format("{}//{}", detail::factor_text(inside), divisor);
  if (e.text.find("//") != e.text.rfind("//")) e.text = fmt::format("({})//{}", inside.text(), divisor);
  e.key = fmt::format("({})//{}", detail::key_of(inside), divisor);
  return outside + DimExpr::wrap(detail::intern(std::move(e)));
}

namespace {

/// The operands of max(x, y), or of max(x, y) * sign.
std::optional<std::pair<Dim, Dim>> max_operands(Dim d, int64_t sign) {
  const Polynomial p = detail::polynomial(d);
  if (p.size() != 1 || p.begin()->second != sign || p.begin()->first.size() != 1) return std::nullopt;
  const DimExpr* e = p.begin()->first[0];
  if (e->kind != DimExpr::Kind::max) return std::nullopt;
  return std::pair(e->a * Dim(sign), e->b * Dim(sign));
}

/// Is a <= b for all values of the symbols? No may mean unknown.
bool at_most(Dim a, Dim b, int depth = 0) {
  constexpr int64_t kFar = int64_t{1} << 60;  // differences of smaller numbers fit a Dim
  if (a == b || a.max() <= b.min()) return true;
  if (a.min() > b.max() || depth > 8) return false;
  if (std::min(a.min(), b.min()) > -kFar && std::max(a.max(), b.max()) < kFar && (b - a).min() >= 0)
    return true;
  const auto below = [&](Dim x) { return at_most(x, b, depth + 1); };
  const auto above = [&](Dim x) { return at_most(a, x, depth + 1); };
  if (const auto of = max_operands(a, 1); of && below(of->first) && below(of->second)) return true;
  if (const auto of = max_operands(b, -1); of && above(of->first) && above(of->second)) return true;
  if (const auto of = max_operands(b, 1); of && (above(of->first) || above(of->second))) return true;
  const auto of = max_operands(a, -1);
  return of && (below(of->first) || below(of->second));
}

}  // namespace

Dim max(Dim a, Dim b) {
  if (at_most(b, a)) return a;
  if (at_most(a, b)) return b;
  if (b.text() < a.text()) std::swap(a, b);
  DimExpr e{.kind = DimExpr::Kind::max,
            .min = std::max(a.min(), b.min()),
            .max = std::max(a.max(), b.max()),
            .a = a,
            .b = b};
  e.text = fmt::format("max({},{})", a.text(), b.text());
  e.key = fmt::format("max({},{})", detail::key_of(a), detail::key_of(b));
  return DimExpr::wrap(detail::intern(std::move(e)));
}

Dim min(Dim a, Dim b) {
  if (at_most(a, b)) return a;
  if (at_most(b, a)) return b;
  return max(a * Dim(-1), b * Dim(-1)) * Dim(-1);
}

namespace {

// An order of monomials that products preserve: by degree, then by atoms. So the leading term of a product is
// the product of the leading terms.
struct ByDegree {
  bool operator()(const auto& x, const auto& y) const {
    const auto &a = x.first, &b = y.first;
    if (a.size() != b.size()) return a.size() < b.size();
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), detail::ByText{});
  }
};

std::optional<Dim> divided(const Polynomial::value_type& a, const Polynomial::value_type& b) {
  if (a.second % b.second != 0 ||
      !std::includes(a.first.begin(), a.first.end(), b.first.begin(), b.first.end(), detail::ByText{}))
    return std::nullopt;
  detail::Monomial rest;
  std::set_difference(a.first.begin(), a.first.end(), b.first.begin(), b.first.end(),
                      std::back_inserter(rest), detail::ByText{});
  return detail::from_polynomial({{std::move(rest), a.second / b.second}});
}

}  // namespace

// Long division: each step removes the leading term of the remainder.
std::optional<Dim> exact_div(Dim a, Dim b) {
  if (b == Dim(0)) return std::nullopt;
  const Polynomial by = detail::polynomial(b);
  const auto& lead = *std::max_element(by.begin(), by.end(), ByDegree{});
  Dim quotient = 0;
  while (!(a == Dim(0))) {
    const Polynomial left = detail::polynomial(a);
    const auto term = divided(*std::max_element(left.begin(), left.end(), ByDegree{}), lead);
    if (!term) return std::nullopt;
    quotient = quotient + *term;
    a = a - *term * b;
  }
  return quotient;
}

namespace {

template <class T, class F>
std::string list_text(std::span<const T> items, F each) {
  std::string s = "[";
  for (size_t i = 0; i < items.size(); ++i) s += (i ? ", " : "") + each(items[i]);
  return s + "]";
}

}  // namespace

Dim element_count(std::span<const Dim> shape) {
  Dim n = 1;
  for (const Dim d : shape) n = n * d;
  return n;
}
int64_t element_count(std::span<const int64_t> shape) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}
std::string text(std::span<const Dim> shape) {
  return list_text(shape, [](Dim d) { return d.text(); });
}
std::string text(std::span<const int64_t> shape) {
  return list_text(shape, [](int64_t d) { return std::to_string(d); });
}
IntList contiguous_strides(std::span<const int64_t> shape) {
  IntList strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) strides[i] = step, step *= std::max<int64_t>(shape[i], 1);
  return strides;
}

}  // namespace weft
