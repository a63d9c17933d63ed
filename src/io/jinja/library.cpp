#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "io/jinja/value.h"
#include "weft/text.h"

// Methods of strings and dicts, filters and tests: those that chat templates use.
namespace weft::io::jinja {
namespace {

using Call = Value (*)(const Value& x, const Arguments& a);
using Table = std::map<std::string, Call, std::less<>>;

const std::string& text_of(const char* what, const Value& x) {
  if (!x.is_string()) throw Error(invalid("{}: wanted a string, got {}", what, x.kind()));
  return x.string();
}
const std::string& wanted_text(const char* what, const Arguments& a, size_t place,
                               std::string_view name = {}) {
  const Value* v = a.get(place, name);
  if (!v) throw Error(invalid("{}: argument {} is missing", what, place + 1));
  return text_of(what, *v);
}
const Value& wanted(const char* what, const Arguments& a, size_t place) {
  const Value* v = a.get(place, {});
  if (!v) throw Error(invalid("{}: argument {} is missing", what, place + 1));
  return *v;
}

// ---- strings

constexpr std::u32string_view kSpaces =
    U" \t\n\r\f\v\u0085\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    U"\u2007\u2008\u2009\u200A\u2028\u2029\u202F\u205F\u3000\x1C\x1D\x1E\x1F";

std::string stripped(const char* what, const Value& x, const Arguments& a, bool left, bool right) {
  a.expect(what, 1, {"chars"});
  const Value* given = a.get(0, "chars");
  const std::u32string cut =
      given && !given->is_none() ? from_utf8(text_of(what, *given)) : std::u32string(kSpaces);
  std::u32string s = from_utf8(text_of(what, x));
  const auto is_cut = [&](char32_t c) { return cut.find(c) != cut.npos; };
  if (right)
    while (!s.empty() && is_cut(s.back())) s.pop_back();
  if (left) s.erase(s.begin(), std::ranges::find_if_not(s, is_cut));
  return to_utf8(s);
}
template <bool left, bool right>
Value strip(const Value& x, const Arguments& a) {
  return stripped("strip", x, a, left, right);
}

char32_t up(char32_t c) { return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))); }
char32_t down(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

/// f(character, does it begin a word?) of each character; a word is letters that have cases.
template <class F>
std::string each_letter(const Value& x, F f) {
  std::u32string s = from_utf8(x.text());
  bool first = true;
  for (char32_t& c : s) {
    const bool letter = up(c) != c || down(c) != c;
    c = f(c, first);
    first = !letter;
  }
  return to_utf8(s);
}
Value upper(const Value& x, const Arguments&) {
  return each_letter(x, [](char32_t c, bool) { return up(c); });
}
Value lower(const Value& x, const Arguments&) {
  return each_letter(x, [](char32_t c, bool) { return down(c); });
}
Value title(const Value& x, const Arguments&) {
  return each_letter(x, [](char32_t c, bool first) { return first ? up(c) : down(c); });
}
Value capitalize(const Value& x, const Arguments& a) {
  std::u32string s = from_utf8(lower(x, a).string());
  if (!s.empty()) s[0] = up(s[0]);
  return to_utf8(s);
}

Value replace(const Value& x, const Arguments& a) {
  a.expect("replace", 3, {"count"});
  const std::string &from = wanted_text("replace", a, 0), &to = wanted_text("replace", a, 1);
  if (from.empty()) throw Error(fail(Code::unsupported, "replace of an empty string"));
  const Value* count = a.get(2, "count");
  int64_t left = count && !count->is_none() ? count->integer() : -1;
  const std::string text = x.text();
  std::string_view rest = text;
  std::string out;
  for (size_t at; left != 0 && (at = rest.find(from)) != rest.npos; --left) {
    out.append(rest.substr(0, at)).append(to);
    rest.remove_prefix(at + from.size());
  }
  return out.append(rest);
}

Value split(const Value& x, const Arguments& a) {
  a.expect("split", 2, {"sep", "maxsplit"});
  std::string_view rest = text_of("split", x);
  const Value *sep = a.get(0, "sep"), *most = a.get(1, "maxsplit");
  int64_t left = most ? most->integer() : -1;
  List parts;
  if (sep && !sep->is_none()) {
    const std::string& by = text_of("split", *sep);
    if (by.empty()) throw Error(invalid("split: the separator is empty"));
    for (size_t at; left != 0 && (at = rest.find(by)) != rest.npos; --left) {
      parts.emplace_back(rest.substr(0, at));
      rest.remove_prefix(at + by.size());
    }
    parts.emplace_back(rest);
    return parts;
  }
  constexpr std::string_view kBlank = " \t\n\r\f\v";
  for (;;) {
    rest.remove_prefix(std::min(rest.find_first_not_of(kBlank), rest.size()));
    if (rest.empty()) return parts;
    const size_t end = left == 0 ? rest.size() : std::min(rest.find_first_of(kBlank), rest.size());
    parts.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end);
    --left;
  }
}
Value rsplit(const Value& x, const Arguments& a) {
  a.expect("rsplit", 2, {"sep", "maxsplit"});
  const std::string& by = wanted_text("rsplit", a, 0, "sep");
  if (by.empty()) throw Error(invalid("rsplit: the separator is empty"));
  std::string_view rest = text_of("rsplit", x);
  const Value* most = a.get(1, "maxsplit");
  int64_t left = most ? most->integer() : -1;
  List parts;
  for (size_t at; left != 0 && (at = rest.rfind(by)) != rest.npos; --left) {
    parts.emplace_back(rest.substr(at + by.size()));
    rest = rest.substr(0, at);
  }
  parts.emplace_back(rest);
  std::ranges::reverse(parts);
  return parts;
}
Value splitlines(const Value& x, const Arguments& a) {
  a.expect("splitlines", 0);
  List lines;
  std::string_view rest = text_of("splitlines", x);
  while (!rest.empty()) {
    const size_t at = std::min(rest.find_first_of("\r\n"), rest.size());
    lines.emplace_back(rest.substr(0, at));
    rest.remove_prefix(at);
    rest.remove_prefix(rest.starts_with("\r\n") ? 2 : std::min<size_t>(rest.size(), 1));
  }
  return lines;
}

template <bool front>
Value is_end(const Value& x, const Arguments& a) {
  a.expect("startswith", 1);
  const std::string& s = text_of("startswith", x);
  const auto fits = [&](const Value& v) {
    const std::string& part = text_of("startswith", v);
    return front ? s.starts_with(part) : s.ends_with(part);
  };
  const Value& one = wanted("startswith", a, 0);
  return one.is_list() ? std::ranges::any_of(one.list(), fits) : fits(one);
}

Value find(const Value& x, const Arguments& a) {
  a.expect("find", 1);
  const size_t at = from_utf8(text_of("find", x)).find(from_utf8(wanted_text("find", a, 0)));
  return at == std::u32string::npos ? int64_t{-1} : static_cast<int64_t>(at);
}
Value count_of(const Value& x, const Arguments& a) {
  a.expect("count", 1);
  const std::string &s = text_of("count", x), &part = wanted_text("count", a, 0);
  if (part.empty()) throw Error(fail(Code::unsupported, "count of an empty string"));
  int64_t n = 0;
  for (size_t at = 0; (at = s.find(part, at)) != s.npos; at += part.size()) ++n;
  return n;
}

std::string joined(const List& parts, const std::string& between) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) out += (i ? between : "") + parts[i].text();
  return out;
}

// ---- dicts

const Dict& dict_of(const char* what, const Value& x) {
  if (!x.is_dict()) throw Error(invalid("{}: wanted a dict, got {}", what, x.kind()));
  return x.dict();
}
Value items(const Value& x, const Arguments& a) {
  a.expect("items", 0);
  if (x.is_undefined()) return List{};
  List all;
  for (const auto& [name, value] : dict_of("items", x).items) all.emplace_back(List{Value(name), value});
  return all;
}
Value keys(const Value& x, const Arguments& a) {
  a.expect("keys", 0);
  dict_of("keys", x);
  return elements(x);
}
Value values(const Value& x, const Arguments& a) {
  a.expect("values", 0);
  List all;
  for (const auto& [name, value] : dict_of("values", x).items) all.push_back(value);
  return all;
}
Value get(const Value& x, const Arguments& a) {
  a.expect("get", 2);
  const Value* found = dict_of("get", x).find(wanted_text("get", a, 0));
  return found ? *found : a.get(1, {}) ? *a.get(1, {}) : Value(nullptr);
}

const Table& methods() {
  static const Table table = {
      {"strip", strip<true, true>},
      {"lstrip", strip<true, false>},
      {"rstrip", strip<false, true>},
      {"upper", upper},
      {"lower", lower},
      {"title", title},
      {"capitalize", capitalize},
      {"replace", replace},
      {"split", split},
      {"rsplit", rsplit},
      {"splitlines", splitlines},
      {"startswith", is_end<true>},
      {"endswith", is_end<false>},
      {"find", find},
      {"count", count_of},
      {"items", items},
      {"keys", keys},
      {"values", values},
      {"get", get},
      {"join",
       [](const Value& x, const Arguments& a) -> Value {
         a.expect("join", 1);
         return joined(elements(wanted("join", a, 0)), text_of("join", x));
       }},
  };
  return table;
}

// ---- filters

Value trim(const Value& x, const Arguments& a) { return strip<true, true>(Value(x.text()), a); }

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

Value to_integer(const Value& x, const Arguments& a) {
  a.expect("int", 1, {"default"});
  if (x.is_real() && std::abs(x.real()) < 0x1p62) return static_cast<int64_t>(x.real());
  if (x.is_number() && !x.is_real()) return x.integer();
  int64_t value = 0;
  if (x.is_string()) {
    const std::string s = strip<true, true>(x, {}).string();
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
    if (error == std::errc() && end == s.data() + s.size() && !s.empty()) return value;
  }
  return a.get(0, "default") ? *a.get(0, "default") : Value(int64_t{0});
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

// select, reject, selectattr, rejectattr: the elements of which a test holds, or does not.
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
  const std::string& s = text_of("indent", x);
  for (size_t i = 0; i < s.size(); ++i) {
    out += s[i];
    if (s[i] == '\n' && i + 1 < s.size() && s[i + 1] != '\n') out += by;
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
      {"title", title},
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

Call known(const Table& table, const char* what, const std::string& name) {
  const auto at = table.find(name);
  if (at == table.end()) throw Error(fail(Code::unsupported, "there is no {} '{}' here", what, name));
  return at->second;
}

}  // namespace

bool is_method(const std::string& name) { return methods().contains(name); }
bool is_filter(const std::string& name) { return filters().contains(name); }
bool is_test(const std::string& name) { return tests().contains(name); }

Value call_method(const Value& x, const std::string& name, const Arguments& a) {
  if (x.is_undefined()) throw Error(invalid("'{}' is undefined", x.undefined().name));
  const Call call = known(methods(), "method", name);
  if (!x.is_string() && !x.is_dict()) throw Error(invalid("{} has no method '{}'", x.kind(), name));
  return call(x, a);
}
Value call_filter(const std::string& name, const Value& x, const Arguments& a) {
  return known(filters(), "filter", name)(x, a);
}
bool call_test(const std::string& name, const Value& x, const Arguments& a) {
  return known(tests(), "test", name)(x, a).truth();
}

}  // namespace weft::io::jinja
