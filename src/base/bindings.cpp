#include <algorithm>

#include "base/dim_expr.h"
#include "base/shown.h"

// Values of symbols, and dimensions evaluated with them.
namespace weft {

using detail::DimExpr;

Status Bindings::bind(std::string_view name, int64_t value) {
  auto at = std::lower_bound(values_.begin(), values_.end(), name,
                             [](const auto& v, std::string_view n) { return v.first < n; });
  if (at != values_.end() && at->first == name) {
    if (at->second == value) return {};
    return invalid("symbol {} is both {} and {}", name, at->second, value);
  }
  values_.insert(at, {std::string(name), value});
  return {};
}

const int64_t* Bindings::find(std::string_view name) const {
  for (const auto& [n, v] : values_)
    if (n == name) return &v;
  return nullptr;
}

Result<int64_t> evaluate(Dim dim, const Bindings& bindings) {
  if (dim.is_const()) return dim.value();
  const auto* e = DimExpr::of(dim);
  switch (e->kind) {
    case DimExpr::Kind::symbol:
      if (const auto* v = bindings.find(e->name)) return *v;
      return invalid("symbol {} has no value: it is a size that must be given", e->name);
    case DimExpr::Kind::floor_div: {
      WEFT_TRY(const int64_t a, evaluate(e->a, bindings));
      return floor_div(Dim(a), e->divisor).value();
    }
    case DimExpr::Kind::max: {
      WEFT_TRY(const int64_t a, evaluate(e->a, bindings));
      WEFT_TRY(const int64_t b, evaluate(e->b, bindings));
      return std::max(a, b);
    }
    case DimExpr::Kind::sum: break;
  }
  int64_t total = 0;
  for (const auto& [m, k] : e->terms) {
    int64_t product = k;
    for (const auto* atom : m) {
      WEFT_TRY(const int64_t v, evaluate(DimExpr::wrap(atom), bindings));
      product *= v;
    }
    total += product;
  }
  return total;
}

Result<IntList> evaluate(std::span<const Dim> dims, const Bindings& bindings) {
  IntList out;
  for (const Dim d : dims) {
    WEFT_TRY(const int64_t v, evaluate(d, bindings));
    out.push_back(v);
  }
  return out;
}

Status unify(Dim dim, int64_t value, Bindings& bindings) {
  std::vector<Symbol> symbols;
  collect_symbols(dim, symbols);
  std::erase_if(symbols, [&](const Symbol& s) { return bindings.find(s.name) != nullptr; });
  if (symbols.empty()) {
    WEFT_TRY(const int64_t have, evaluate(dim, bindings));
    if (have != value) return invalid("dimension {} is {}, got {}", shown(dim.text()), have, value);
    return {};
  }
  if (symbols.size() > 1)
    return invalid("dimension {} has two unknown symbols; bind one first", shown(dim.text()));
  // Every operation of a Dim is monotone in a symbol with a positive factor, so bisection finds the value.
  const Symbol& s = symbols[0];
  int64_t lo = s.min, hi = s.max;
  while (lo < hi) {
    const int64_t mid = lo + (hi - lo) / 2;
    Bindings trial = bindings;
    WEFT_CHECK(trial.bind(s.name, mid));
    WEFT_TRY(const int64_t have, evaluate(dim, trial));
    have < value ? lo = mid + 1 : hi = mid;
  }
  Bindings trial = bindings;
  WEFT_CHECK(trial.bind(s.name, lo));
  WEFT_TRY(const int64_t have, evaluate(dim, trial));
  if (have != value)
    return invalid("dimension {} can't be {} for any {} in {}..{}", shown(dim.text()), value, s.name, s.min,
                   s.max);
  if (lo < s.max) {  // a quotient and a maximum are the same for several
    Bindings next = bindings;
    WEFT_CHECK(next.bind(s.name, lo + 1));
    WEFT_TRY(const int64_t other, evaluate(dim, next));
    if (other == value)
      return invalid("dimension {} is {} for {} = {} and for {}: another size must tell which it is",
                     shown(dim.text()), value, s.name, lo, lo + 1);
  }
  bindings = std::move(trial);
  return {};
}

void collect_symbols(Dim dim, std::vector<Symbol>& out) {
  if (dim.is_const()) return;
  const auto* e = DimExpr::of(dim);
  switch (e->kind) {
    case DimExpr::Kind::symbol: {
      const Symbol s{e->name, e->min, e->max};
      if (std::find(out.begin(), out.end(), s) == out.end()) out.push_back(s);
      return;
    }
    case DimExpr::Kind::max: collect_symbols(e->b, out); [[fallthrough]];
    case DimExpr::Kind::floor_div: collect_symbols(e->a, out); return;
    case DimExpr::Kind::sum:
      for (const auto& [m, k] : e->terms)
        for (const auto* atom : m) collect_symbols(DimExpr::wrap(atom), out);
  }
}

}  // namespace weft
