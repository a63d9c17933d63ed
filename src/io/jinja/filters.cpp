#include <algorithm>
#include <charconv>
#include <cmath>

#include "io/jinja/library.h"
#include "weft/text.h"

// Filters and tests that chat templates use, with Jinja2's meaning.
namespace weft::io::jinja {
namespace {

Value trim(const Value& x, const Arguments& a) { return strip(Value(x.text()), a); }

Value by_default(const Value& x, const Arguments& a) {
  a.expect("default", 2, {"default_value", "boolean"});
  const Value* boolean = a.get(1, "boolean");
  const bool missing = x.is_undefined() || (boolean && boolean->truth() && !x.truth());
  const Value* other = a.get(0, "default_value");
  return !missing ? x : other ? *other : Value("");
}

Value tojson(const Value& x, const Arguments& a) {
  a.expect("tojson", 1, {"indent", "ensure_ascii"});
  if (const Value* ascii = a.get(9, "ensure_ascii"); ascii && ascii->truth())
    throw Error(fail(Code::unsupported, "tojson with ensure_ascii=true"));
  const Value* indent = a.get(0, "indent");
  return to_json(x, indent && !indent->is_none() ? std::clamp<int64_t>(indent->integer(), 0, 64) : -1);
}

Value join(const Value& x, const Arguments& a) {
  a.expect("join", 2, {"d", "attribute"});
  List parts = elements(x);
  if (const Value* attribute = a.get(1, "attribute"))
    for (Value& v : parts) v = item(v, *attribute);
  const Value* between = a.get(0, "d");
  return joined(parts, between ? text_of("join", *between) : "");
}

// A number as int() and float() read it: drops white space around it, a '+', and single '_' between digits.
std::string digits_of(const std::string& text) {
  const std::string s = strip(Value(text), {}).string();
  std::string out;
  for (size_t i = s.starts_with('+') && !s.starts_with("+-") ? 1 : 0; i < s.size(); ++i) {
    const auto digit = [&](size_t at) { return at < s.size() && s[at] >= '0' && s[at] <= '9'; };
    if (s[i] != '_' || i == 0 || !digit(i - 1) || !digit(i + 1)) out += s[i];
  }
  return out;
}

Value whole(double x) {
  if (std::abs(x) >= 0x1p63) throw Error(fail(Code::unsupported, "int: {} is beyond 64 bits", x));
  return static_cast<int64_t>(x);
}

Value to_integer(const Value& x, const Arguments& a) {
  a.expect("int", 1, {"default"});
  const Value otherwise = a.get(0, "default") ? *a.get(0, "default") : Value(int64_t{0});
  if (x.is_real()) return std::isnan(x.real()) ? otherwise : whole(x.real());
  if (x.is_number()) return x.integer();
  if (!x.is_string()) return otherwise;
  const std::string s = digits_of(x.string());
  const char* const last = s.data() + s.size();
  int64_t value = 0;
  if (const auto read = std::from_chars(s.data(), last, value); read.ptr == last && !s.empty()) {
    if (read.ec == std::errc()) return value;
    throw Error(fail(Code::unsupported, "int: {:.40} is beyond 64 bits", s));
  }
  double real = 0;  // "3.7" is 3
  const auto read = std::from_chars(s.data(), last, real);
  return read.ptr == last && read.ec == std::errc() && std::isfinite(real) ? whole(real) : otherwise;
}

// Not str.title(): words end only at white space and opening brackets.
Value title_of_words(const Value& x, const Arguments&) {
  std::u32string s = from_utf8(x.text());
  bool begins = true;
  for (char32_t& c : s) {
    const bool between = is_blank(c) || std::u32string_view(U"-({[<").find(c) != std::u32string_view::npos;
    if (!between) c = begins ? upper(c) : lower(c);
    begins = between;
  }
  return to_utf8(s);
}

// map(attribute="x"), and map("filter").
Value map(const Value& x, const Arguments& a) {
  List all = elements(x);
  if (const Value* attribute = a.get(99, "attribute")) {
    const Value* otherwise = a.get(99, "default");
    for (Value& v : all) {
      v = item(v, *attribute);
      if (v.is_undefined() && otherwise) v = *otherwise;
    }
    return all;
  }
  const std::string& name = wanted_text("map", a, 0);
  Arguments rest;
  rest.positional.assign(a.positional.begin() + 1, a.positional.end());
  for (Value& v : all) v = call_filter(name, v, rest);
  return all;
}

// select, reject, selectattr, rejectattr: the elements for which a test holds, or does not.
template <bool attribute, bool keep>
Value chosen(const Value& x, const Arguments& a) {
  constexpr size_t test = attribute ? 1 : 0;
  Arguments rest;
  if (a.positional.size() > test + 1)
    rest.positional.assign(a.positional.begin() + test + 1, a.positional.end());
  List all;
  for (const Value& v : elements(x)) {
    const Value part = attribute ? item(v, wanted("selectattr", a, 0)) : v;
    const bool holds =
        a.positional.size() > test ? call_test(wanted_text("select", a, test), part, rest) : part.truth();
    if (holds == keep) all.push_back(v);
  }
  return all;
}

template <bool front>
Value end_element(const Value& x, const Arguments& a) {
  a.expect("first", 0);
  const List all = elements(x);
  if (all.empty()) return Undefined{front ? "first of nothing" : "last of nothing"};
  return front ? all.front() : all.back();
}

Value indent(const Value& x, const Arguments& a) {
  a.expect("indent", 2, {"width", "first"});
  const Value *width = a.get(0, "width"), *first = a.get(1, "first");
  const std::string by(static_cast<size_t>(std::clamp<int64_t>(width ? width->integer() : 4, 0, 256)), ' ');
  std::string out = first && first->truth() ? by : "";
  bool behind = false;
  for (const std::string& line : lines_of(text_of("indent", x) + "\n")) {
    if (std::exchange(behind, true)) (out += "\n") += line.empty() ? "" : by;
    out += line;
    if (out.size() > Meter::kMost) throw too_large();
  }
  return out;
}

const Table& filters() {
  static const Table table = {
      {"trim", trim},
      {"default", by_default},
      {"d", by_default},
      {"tojson", tojson},
      {"join", join},
      {"int", to_integer},
      {"map", map},
      {"select", chosen<false, true>},
      {"reject", chosen<false, false>},
      {"selectattr", chosen<true, true>},
      {"rejectattr", chosen<true, false>},
      {"first", end_element<true>},
      {"last", end_element<false>},
      {"indent", indent},
      {"upper", upper},
      {"lower", lower},
      {"title", title_of_words},
      {"capitalize", capitalize},
      {"replace", replace},
      {"items", items},
      {"length", [](const Value& x, const Arguments&) -> Value { return length_of(x); }},
      {"count", [](const Value& x, const Arguments&) -> Value { return length_of(x); }},
      {"list", [](const Value& x, const Arguments&) -> Value { return elements(x); }},
      {"string", [](const Value& x, const Arguments&) -> Value { return x.text(); }},
      {"safe", [](const Value& x, const Arguments&) -> Value { return x; }},
      {"abs",
       [](const Value& x, const Arguments&) -> Value {
         return compared("<", x, int64_t{0}) ? negated(x) : x;
       }},
      {"reverse",
       [](const Value& x, const Arguments&) -> Value {
         List all = elements(x);
         std::ranges::reverse(all);
         return x.is_string() ? Value(joined(all, "")) : Value(std::move(all));
       }},
  };
  return table;
}

const Table& tests() {
  static const Table table = {
      {"defined", [](const Value& x, const Arguments&) -> Value { return !x.is_undefined(); }},
      {"undefined", [](const Value& x, const Arguments&) -> Value { return x.is_undefined(); }},
      {"none", [](const Value& x, const Arguments&) -> Value { return x.is_none(); }},
      {"string", [](const Value& x, const Arguments&) -> Value { return x.is_string(); }},
      {"number", [](const Value& x, const Arguments&) -> Value { return x.is_number(); }},
      {"integer", [](const Value& x, const Arguments&) -> Value { return x.is_integer(); }},
      {"float", [](const Value& x, const Arguments&) -> Value { return x.is_real(); }},
      {"boolean", [](const Value& x, const Arguments&) -> Value { return x.is_bool(); }},
      {"true", [](const Value& x, const Arguments&) -> Value { return x.is_bool() && x.truth(); }},
      {"false", [](const Value& x, const Arguments&) -> Value { return x.is_bool() && !x.truth(); }},
      {"mapping", [](const Value& x, const Arguments&) -> Value { return x.is_dict(); }},
      {"callable",
       [](const Value& x, const Arguments&) -> Value { return x.is_function() || x.is_undefined(); }},
      {"iterable",
       [](const Value& x, const Arguments&) -> Value {
         return x.is_string() || x.is_list() || x.is_dict() || x.is_undefined();
       }},
      {"sequence",
       [](const Value& x, const Arguments&) -> Value {
         return x.is_string() || x.is_list() || x.is_dict() || x.is_undefined();
       }},
      {"odd", [](const Value& x, const Arguments&) -> Value { return x.integer() % 2 != 0; }},
      {"even", [](const Value& x, const Arguments&) -> Value { return x.integer() % 2 == 0; }},
      {"divisibleby",
       [](const Value& x, const Arguments& a) -> Value {
         return binary("%", x, wanted("divisibleby", a, 0)) == Value(int64_t{0});
       }},
      {"eq", [](const Value& x, const Arguments& a) -> Value { return x == wanted("eq", a, 0); }},
      {"equalto", [](const Value& x, const Arguments& a) -> Value { return x == wanted("equalto", a, 0); }},
      {"==", [](const Value& x, const Arguments& a) -> Value { return x == wanted("==", a, 0); }},
      {"ne", [](const Value& x, const Arguments& a) -> Value { return !(x == wanted("ne", a, 0)); }},
      {"in", [](const Value& x, const Arguments& a) -> Value { return contains(wanted("in", a, 0), x); }},
  };
  return table;
}

}  // namespace

bool is_filter(const std::string& name) { return filters().contains(name); }
bool is_test(const std::string& name) { return tests().contains(name); }

Value call_filter(const std::string& name, const Value& x, const Arguments& a) {
  x.count_work();
  return known(filters(), "filter", name)(x, a);
}
bool call_test(const std::string& name, const Value& x, const Arguments& a) {
  x.count_work();
  return known(tests(), "test", name)(x, a).truth();
}

}  // namespace weft::io::jinja
