#include "cli/source/expression.h"

#include <fmt/ranges.h>

#include <cmath>

#include "base/dim_expr.h"
#include "base/identical.h"

namespace weft::cli::source {
namespace {

using detail::DimExpr;

std::string within(const Text& t, Binding least) { return t.binding >= least ? t.text : "(" + t.text + ")"; }

Text joined(const Text& a, char op, const Text& b) {
  const bool sum = op == '+' || op == '-';
  const Binding own = sum ? Binding::sum : Binding::product;
  // The right side of an operator of the same rank needs brackets: the left one is computed first.
  return {fmt::format("{} {} {}", within(a, own), op, within(b, sum ? Binding::product : Binding::whole)),
          own};
}

std::string real_text(double v) {
  if (std::isnan(v)) return "std::numeric_limits<double>::quiet_NaN()";
  if (std::isinf(v)) return fmt::format("{}std::numeric_limits<double>::infinity()", v < 0 ? "-" : "");
  std::string s = fmt::format("{}", v);
  if (s.find_first_of(".en") == s.npos) s += ".0";
  return s;
}
/// Beside a tensor: whole numbers are written so.
std::string number_text(double v) {
  const bool whole = std::abs(v) < 1e6 && v == std::trunc(v) && !(v == 0 && std::signbit(v));
  return whole ? fmt::format("{}", static_cast<int64_t>(v)) : real_text(v);
}

std::string shape_text(const Shape& shape) {
  std::string s;
  for (const Dim d : shape) s += (s.empty() ? "" : ", ") + dim_text(d).text;
  return "{" + s + "}";
}

std::string attr_text(const ir::AttrSpec& spec, const AttrValue& v) {
  switch (spec.kind) {
    case ir::AttrKind::integer: return fmt::format("{}", std::get<int64_t>(v));
    case ir::AttrKind::real: return real_text(std::get<double>(v));
    case ir::AttrKind::boolean: return std::get<int64_t>(v) ? "true" : "false";
    case ir::AttrKind::dtype: return dtype_text(*dtype_from_name(std::get<std::string>(v)));
    case ir::AttrKind::dims: return shape_text(std::get<Shape>(v));
    case ir::AttrKind::dim: return dim_text(std::get<Shape>(v)[0]).text;
    case ir::AttrKind::string: return literal(std::get<std::string>(v));
  }
  return "";
}

/// Attributes up to the last one that is not its default; those that do not explain themselves with names.
std::vector<std::string> attr_texts(const Line& line) {
  const auto defaults = line.op->defaults();
  size_t n = line.attrs.size();
  while (n > 0 && identical(line.attrs[n - 1], defaults[n - 1])) --n;
  std::vector<std::string> out;
  for (size_t i = 0; i < n; ++i) {
    const auto& spec = line.op->attrs[i];
    const bool plain = spec.kind == ir::AttrKind::dtype || spec.kind == ir::AttrKind::string ||
                       (i == 0 && spec.kind != ir::AttrKind::boolean);
    const std::string name = plain ? "" : fmt::format("/*{}=*/", spec.name);
    out.push_back(name + attr_text(spec, line.attrs[i]));
  }
  return out;
}

char operator_of(std::string_view op) {
  return op == "add" ? '+' : op == "sub" ? '-' : op == "mul" ? '*' : op == "div" ? '/' : 0;
}

}  // namespace

std::string literal(const std::string& text) {
  std::string s = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      s += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte == 0x7f)
      s += fmt::format("\\{:03o}", byte);
    else
      s += c;
  }
  return s + "\"";
}

std::string dtype_text(DType dtype) {
  return fmt::format("DType::{}", dtype == DType::boolean ? "boolean" : name(dtype));
}

std::string full_text(const Value& v) {
  const auto number = number_text(v.number);
  return v.dtype == DType::f32 ? fmt::format("full({})", number)
                               : fmt::format("full({}, {{}}, {})", number, dtype_text(v.dtype));
}

Text dim_text(Dim dim) {
  if (dim.is_const()) return {dim.text()};
  const auto* e = DimExpr::of(dim);
  switch (e->kind) {
    case DimExpr::Kind::symbol: return {e->name};
    case DimExpr::Kind::floor_div: return {fmt::format("floor_div({}, {})", dim_text(e->a).text, e->divisor)};
    case DimExpr::Kind::max:
      return {fmt::format("max(Dim({}), {})", dim_text(e->a).text, dim_text(e->b).text)};
    case DimExpr::Kind::sum: break;
  }
  Text sum;
  for (const auto& [atoms, factor] : e->terms) {
    Text term;
    for (const auto* atom : atoms)
      term = term.text.empty() ? dim_text(DimExpr::wrap(atom))
                               : joined(term, '*', dim_text(DimExpr::wrap(atom)));
    if (term.text.empty())
      term = {fmt::format("{}", factor)};
    else if (factor != 1)
      term = joined(term, '*', {fmt::format("{}", factor)});
    sum = sum.text.empty() ? term : joined(sum, '+', term);
  }
  return sum;
}

Text call_text(const Listing& listing, const Line& line, const std::function<Text(size_t)>& operand) {
  const auto value = [&](size_t i) -> const Value& { return listing.at(line.inputs[i]); };
  const auto is_number = [&](size_t i) { return value(i).kind == Value::Kind::number; };
  const auto argument = [&](size_t i) -> Text {
    if (line.inputs[i] == kNone) return {"{}"};
    return is_number(i) ? Text{full_text(value(i))} : operand(i);
  };
  const std::string_view op = line.op->name;
  if (const char sign = operator_of(op)) {
    if (is_number(1) && !is_number(0)) return joined(operand(0), sign, {number_text(value(1).number)});
    return joined(argument(0), sign, argument(1));
  }
  std::vector<std::string> all;
  for (size_t i = 0; i < line.inputs.size(); ++i) all.push_back(argument(i).text);
  while (!all.empty() && line.inputs[all.size() - 1] == kNone) all.pop_back();
  const auto attrs = attr_texts(line);
  // Ops over lists have functions that take one.
  if (op == "concat")
    return {fmt::format("concat({{{}}}, {})", fmt::join(all, ", "), std::get<int64_t>(line.attrs[0]))};
  if (op == "einsum")
    return {fmt::format("einsum({}, {{{}}})", literal(std::get<std::string>(line.attrs[0])),
                        fmt::join(all, ", "))};
  if (!attrs.empty()) all.resize(line.op->listed(line.inputs.size()), "{}");
  all.insert(all.end(), attrs.begin(), attrs.end());
  return {fmt::format("{}({})", op, fmt::join(all, ", "))};
}

/// Where a line may be broken: behind a comma or before an operator, as far out of brackets as there is one,
/// outside of texts in quotes. 0: nowhere.
static size_t break_of(const std::string& line, size_t most) {
  size_t best = 0, depth = 0, least = line.size();
  bool in_quotes = false;
  for (size_t at = line.find_first_not_of(' ') + 1; at + 1 < std::min(most, line.size()); ++at) {
    const char c = line[at];
    if (c == '"' && line[at - 1] != '\\') in_quotes = !in_quotes;
    if (in_quotes) continue;
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']') --depth;
    const bool here = (c == ',' && line[at + 1] == ' ') || line.compare(at + 1, 3, " + ") == 0 ||
                      line.compare(at + 1, 3, " * ") == 0;
    if (here && depth <= least) best = at + 1, least = depth;
  }
  return best;
}

std::string statement(const std::string& text, int indent) {
  constexpr size_t kColumns = 100;
  std::string out, line = std::string(static_cast<size_t>(indent), ' ') + text;
  while (line.size() > kColumns) {
    const size_t cut = break_of(line, kColumns);
    if (cut == 0) break;
    out += line.substr(0, cut) + "\n";
    line = std::string(static_cast<size_t>(indent) + 4, ' ') + line.substr(cut + 1);
  }
  return out + line + "\n";
}

}  // namespace weft::cli::source
