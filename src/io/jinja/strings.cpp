#include <utf8proc.h>

#include <algorithm>

#include "io/jinja/library.h"
#include "weft/text.h"

// Methods of strings, with the meaning of Python's.
namespace weft::io::jinja {
namespace {

template <bool left, bool right>
Value strip_ends(const Value& x, const Arguments& a) {
  a.expect("strip", 1, {"chars"});
  const Value* given = a.get(0, "chars");
  const bool blank = !given || given->is_none();
  const std::u32string cut = blank ? std::u32string() : from_utf8(text_of("strip", *given));
  const auto is_cut = [&](char32_t c) { return blank ? is_blank(c) : cut.find(c) != cut.npos; };
  std::u32string s = from_utf8(text_of("strip", x));
  if (right)
    while (!s.empty() && is_cut(s.back())) s.pop_back();
  if (left) s.erase(s.begin(), std::ranges::find_if_not(s, is_cut));
  return to_utf8(s);
}

char32_t titled(char32_t c) {
  return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
}

template <class F>
std::string each_character(const Value& x, F f) {
  std::u32string s = from_utf8(x.text());
  for (char32_t& c : s) c = f(c);
  return to_utf8(s);
}

// A word is letters that have cases.
Value title(const Value& x, const Arguments&) {
  bool begins = true;
  return each_character(x, [&](char32_t c) {
    const bool letter = upper(c) != c || lower(c) != c;
    return std::exchange(begins, !letter) ? titled(c) : lower(c);
  });
}

// The parts between white space.
List words_of(std::string_view text, int64_t most) {
  std::u32string_view rest;
  const std::u32string all = from_utf8(text);
  rest = all;
  List parts;
  for (;; --most) {
    rest.remove_prefix(static_cast<size_t>(std::ranges::find_if_not(rest, is_blank) - rest.begin()));
    if (rest.empty()) return parts;
    const auto end = most == 0 ? rest.end() : std::ranges::find_if(rest, is_blank);
    const auto length = static_cast<size_t>(end - rest.begin());
    parts.emplace_back(to_utf8(rest.substr(0, length)));
    rest.remove_prefix(length);
  }
}

Value split(const Value& x, const Arguments& a) {
  a.expect("split", 2, {"sep", "maxsplit"});
  std::string_view rest = text_of("split", x);
  const Value *sep = a.get(0, "sep"), *most = a.get(1, "maxsplit");
  int64_t left = most ? most->integer() : -1;
  if (!sep || sep->is_none()) return words_of(rest, left);
  const std::string& by = text_of("split", *sep);
  if (by.empty()) throw Error(invalid("split: the separator is empty"));
  Meter::search(rest, by);
  List parts;
  for (size_t at; left != 0 && (at = rest.find(by)) != rest.npos; --left) {
    parts.emplace_back(rest.substr(0, at));
    rest.remove_prefix(at + by.size());
  }
  parts.emplace_back(rest);
  return parts;
}
Value rsplit(const Value& x, const Arguments& a) {
  a.expect("rsplit", 2, {"sep", "maxsplit"});
  const std::string& by = wanted_text("rsplit", a, 0, "sep");
  if (by.empty()) throw Error(invalid("rsplit: the separator is empty"));
  std::string_view rest = text_of("rsplit", x);
  Meter::search(rest, by);
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
  for (auto& line : lines_of(text_of("splitlines", x))) lines.emplace_back(std::move(line));
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
  Meter::search(text_of("find", x), wanted_text("find", a, 0));
  const size_t at = from_utf8(text_of("find", x)).find(from_utf8(wanted_text("find", a, 0)));
  return at == std::u32string::npos ? int64_t{-1} : static_cast<int64_t>(at);
}
Value count_of(const Value& x, const Arguments& a) {
  a.expect("count", 1);
  const std::string &s = text_of("count", x), &part = wanted_text("count", a, 0);
  if (part.empty()) throw Error(fail(Code::unsupported, "count of an empty string"));
  Meter::search(s, part);
  int64_t n = 0;
  for (size_t at = 0; (at = s.find(part, at)) != s.npos; at += part.size()) ++n;
  return n;
}

}  // namespace

const std::string& text_of(const char* what, const Value& x) {
  if (!x.is_string()) throw Error(invalid("{}: wanted a string, got {}", what, x.kind()));
  return x.string();
}
const Value& wanted(const char* what, const Arguments& a, size_t place) {
  const Value* v = a.get(place, {});
  if (!v) throw Error(invalid("{}: argument {} is missing", what, place + 1));
  return *v;
}
const std::string& wanted_text(const char* what, const Arguments& a, size_t place, std::string_view name) {
  const Value* v = a.get(place, name);
  if (!v) throw Error(invalid("{}: argument {} is missing", what, place + 1));
  return text_of(what, *v);
}

std::string joined(const List& parts, std::string_view between) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) out += between;
    out += parts[i].text();
    if (out.size() > Meter::kMost) throw too_large();
  }
  return out;
}

bool is_blank(char32_t c) {
  return std::u32string_view(
             U" \t\n\r\f\v\x1C\x1D\x1E\x1F\u0085\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
             U"\u2007\u2008\u2009\u200A\u2028\u2029\u202F\u205F\u3000")
             .find(c) != std::u32string_view::npos;
}

std::vector<std::string> lines_of(std::string_view text) {
  constexpr std::u32string_view kEnds = U"\n\r\f\v\x1C\x1D\x1E\u0085\u2028\u2029";
  const std::u32string all = from_utf8(text);
  std::u32string_view rest = all;
  std::vector<std::string> lines;
  while (!rest.empty()) {
    const size_t at = std::min(rest.find_first_of(kEnds), rest.size());
    lines.push_back(to_utf8(rest.substr(0, at)));
    rest.remove_prefix(at);
    rest.remove_prefix(rest.starts_with(U"\r\n") ? 2 : std::min<size_t>(rest.size(), 1));
  }
  return lines;
}

char32_t upper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
char32_t lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

Value strip(const Value& x, const Arguments& a) { return strip_ends<true, true>(x, a); }
Value upper(const Value& x, const Arguments&) {
  return each_character(x, [](char32_t c) { return upper(c); });
}
Value lower(const Value& x, const Arguments&) {
  return each_character(x, [](char32_t c) { return lower(c); });
}
Value capitalize(const Value& x, const Arguments&) {
  bool first = true;
  return each_character(x, [&](char32_t c) { return std::exchange(first, false) ? titled(c) : lower(c); });
}

Value replace(const Value& x, const Arguments& a) {
  a.expect("replace", 3, {"count"});
  const std::string &from = wanted_text("replace", a, 0), &to = wanted_text("replace", a, 1);
  if (from.empty()) throw Error(fail(Code::unsupported, "replace of an empty string"));
  const Value* count = a.get(2, "count");
  int64_t left = count && !count->is_none() ? count->integer() : -1;
  const std::string text = x.text();
  Meter::search(text, from);
  std::string_view rest = text;
  std::string out;
  for (size_t at; left != 0 && (at = rest.find(from)) != rest.npos; --left) {
    out.append(rest.substr(0, at)).append(to);
    rest.remove_prefix(at + from.size());
    if (out.size() > Meter::kMost) throw too_large();
  }
  return out.append(rest);
}

const Table& string_methods() {
  static const Table table = {
      {"strip", strip},
      {"lstrip", strip_ends<true, false>},
      {"rstrip", strip_ends<false, true>},
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
      {"join",
       [](const Value& x, const Arguments& a) -> Value {
         a.expect("join", 1);
         return joined(elements(wanted("join", a, 0)), text_of("join", x));
       }},
  };
  return table;
}

}  // namespace weft::io::jinja
