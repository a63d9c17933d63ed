#include "io/jinja/value.h"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "io/utf8.h"
#include "weft/text.h"

namespace weft::io::jinja {
namespace {

[[noreturn]] void undefined_used(const Value& v) {
  throw Error(invalid("'{}' is undefined", v.undefined().name));
}

std::string real_text(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  std::string s = fmt::format("{}", d);
  return s.find_first_of(".e") == s.npos ? s + ".0" : s;
}

Error namespace_within() {
  return Error(fail(Code::unsupported, "a namespace within a namespace is not supported"));
}

// Python's str.isprintable().
bool is_printable(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    case UTF8PROC_CATEGORY_ZS: return c == ' ';
    default: return true;
  }
}

// Python prefers single quotes, and takes double ones if that saves an escape.
std::string python_quoted(std::string_view s) {
  const char quote = s.find('\'') != s.npos && s.find('"') == s.npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char32_t c : from_utf8(s)) {
    constexpr std::u32string_view kEscaped = U"\\\n\t\r";
    if (c == static_cast<char32_t>(quote))
      (out += '\\') += quote;
    else if (const size_t at = kEscaped.find(c); at != kEscaped.npos)
      (out += '\\') += "\\ntr"[at];
    else if (is_printable(c))
      append_utf8(out, c);
    else if (const auto code = static_cast<uint32_t>(c); code < 0x100)
      out += fmt::format("\\x{:02x}", code);
    else
      out += code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
  }
  return out + quote;
}

std::string json_quoted(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f", kLetters = "\"\\nrtbf";
    if (const size_t at = kEscaped.find(c); at != kEscaped.npos)
      (out += '\\') += kLetters[at];
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      out += c;
  }
  return out + '"';
}

// Elements of a list or a dict in brackets, one per line if there is an indent.
template <class Each>
std::string bracketed(const char* brackets, size_t n, int64_t indent, int64_t depth, Each each) {
  if (n == 0) return {brackets[0], brackets[1]};
  const auto line = [&](int64_t d) {
    return indent < 0 ? std::string() : "\n" + std::string(static_cast<size_t>(indent * d), ' ');
  };
  std::string out(1, brackets[0]);
  for (size_t i = 0; i < n; ++i) {
    if (i) out += indent < 0 ? ", " : ",";
    out += line(depth + 1) + each(i);
    if (out.size() > Meter::kMost) throw too_large();
  }
  return out + line(depth) + brackets[1];
}

std::string json_text(const Value& v, int64_t indent, int64_t depth) {
  if (v.is_none()) return "null";
  if (v.is_bool()) return v.truth() ? "true" : "false";
  if (v.is_string()) return json_quoted(v.string());
  if (v.is_list())
    return bracketed("[]", v.list().size(), indent, depth,
                     [&](size_t i) { return json_text(v.list()[i], indent, depth + 1); });
  if (v.is_dict() && !v.dict().is_namespace)
    return bracketed("{}", v.dict().items.size(), indent, depth, [&](size_t i) {
      const auto& [name, value] = v.dict().items[i];
      return json_quoted(name) + ": " + json_text(value, indent, depth + 1);
    });
  if (!v.is_number()) throw Error(invalid("tojson: {} can't be written as JSON", v.kind()));
  return v.text();
}

thread_local Meter* meter = nullptr;  // the innermost live one

constexpr int kDeepest = 100;  // lists and dicts in one another

}  // namespace

Error too_large() {
  return Error(invalid("a value of more than {} MiB, all that lies in it counted", Meter::kMost >> 20));
}

Meter::Meter() : outer_(std::exchange(meter, this)) {}
Meter::~Meter() { meter = outer_; }
Meter::Share::Share(size_t bytes) : meter_(meter), bytes_(bytes) {
  if (!meter_) return;
  if (bytes > kMost - meter_->held_)
    throw Error(invalid("the chat template holds more than {} MiB at a time", kMost >> 20));
  work(bytes);
  meter_->held_ += bytes;
}
void Meter::work(size_t bytes) {
  if (meter && (meter->worked_ += bytes) > kMostWork)
    throw Error(invalid("the chat template goes through more than {} MiB in all", kMostWork >> 20));
}
Meter::Share::~Share() {
  if (meter_) meter_->held_ -= bytes_;
}

Extent& Extent::operator+=(const Extent& part) {
  bytes += part.bytes;
  if (bytes > Meter::kMost) throw too_large();
  depth = std::max(depth, part.depth + 1);
  if (depth > kDeepest) throw Error(invalid("more than {} lists in one another", kDeepest));
  has_namespace = has_namespace || part.has_namespace;
  return *this;
}

Value::Value(std::string s) {
  const size_t bytes = s.size();
  v_ = std::make_shared<Counted<std::string>>(std::move(s), Extent{sizeof(Value) + bytes}, bytes);
}
Value::Value(List l) {
  Extent all{sizeof(Value)};
  for (const Value& v : l) all += v.extent();
  const size_t bytes = l.size() * sizeof(Value);
  v_ = std::make_shared<Counted<List>>(std::move(l), all, bytes);
}
// A namespace is mutable, so its contents are not counted or traversed; and it can't be stored in another
// one, to avoid reference cycles.
Value::Value(Dict d) {
  Extent all{sizeof(Value)};
  size_t bytes = 0;
  for (const auto& [name, v] : d.items) {
    all += v.extent();
    all += {name.size()};
    bytes += sizeof d.items[0] + name.size();
  }
  if (d.is_namespace && all.has_namespace) throw namespace_within();
  if (d.is_namespace) all = {sizeof(Value), 0, true};
  v_ = std::make_shared<Counted<Dict>>(std::move(d), all, bytes);
}

void Value::set_member(const std::string& name, Value value) const {
  if (value.extent().has_namespace) throw namespace_within();
  std::get<Shared<Dict>>(v_)->content.set(name, std::move(value));
}

Extent Value::extent() const {
  if (const auto* s = std::get_if<Shared<std::string>>(&v_)) return (*s)->extent;
  if (const auto* l = std::get_if<Shared<List>>(&v_)) return (*l)->extent;
  if (const auto* d = std::get_if<Shared<Dict>>(&v_)) return (*d)->extent;
  return {sizeof(Value)};
}

void Value::count_work() const {
  if (is_string()) Meter::work(string().size());
  if (is_list()) Meter::work(list().size() * sizeof(Value));
  if (is_dict()) Meter::work(dict().items.size() * sizeof(dict().items[0]));
}

const Value* Dict::find(std::string_view name) const {
  for (const auto& [key, value] : items)
    if (key == name) return &value;
  return nullptr;
}
void Dict::set(const std::string& name, Value value) {
  for (auto& [key, old] : items)
    if (key == name) {
      old = std::move(value);
      return;
    }
  items.emplace_back(name, std::move(value));
}

const Value* Arguments::get(size_t place, std::string_view name) const {
  if (place < positional.size()) return &positional[place];
  for (const auto& [key, value] : named)
    if (key == name) return &value;
  return nullptr;
}
void Arguments::expect_count(std::string_view what, size_t most) const {
  if (positional.size() > most)
    throw Error(invalid("{} takes at most {} arguments, got {}", what, most, positional.size()));
}
void Arguments::expect(std::string_view what, size_t most,
                       std::initializer_list<std::string_view> names) const {
  expect_count(what, most);
  for (const auto& [name, value] : named)
    if (std::ranges::find(names, std::string_view(name)) == names.end())
      throw Error(fail(Code::unsupported, "{} with an argument '{}'", what, name));
}

int64_t Value::integer() const {
  if (is_bool()) return truth();
  if (!is_integer()) throw Error(invalid("wanted a whole number, got {}", kind()));
  return std::get<int64_t>(v_);
}
double Value::real() const { return is_real() ? std::get<double>(v_) : static_cast<double>(integer()); }

bool Value::truth() const {
  if (is_bool()) return std::get<bool>(v_);
  if (is_integer()) return std::get<int64_t>(v_) != 0;
  if (is_real()) return std::get<double>(v_) != 0;
  if (is_string()) return !string().empty();
  if (is_list()) return !list().empty();
  if (is_dict()) return dict().is_namespace || !dict().items.empty();
  return is_function();
}

std::string Value::quoted() const { return is_string() ? python_quoted(string()) : text(); }

std::string Value::text() const {
  if (is_undefined()) return "";
  if (is_none()) return "None";
  if (is_bool()) return truth() ? "True" : "False";
  if (is_integer()) return fmt::format("{}", integer());
  if (is_real()) return real_text(real());
  if (is_string()) return string();
  if (is_list()) return bracketed("[]", list().size(), -1, 0, [&](size_t i) { return list()[i].quoted(); });
  if (is_dict() && !dict().is_namespace)
    return bracketed("{}", dict().items.size(), -1, 0, [&](size_t i) {
      const auto& [name, value] = dict().items[i];
      return python_quoted(name) + ": " + value.quoted();
    });
  throw Error(fail(Code::unsupported, "the text of {}", kind()));
}

const char* Value::kind() const {
  constexpr const char* kNames[] = {
      "something undefined", "none", "true or false", "a number", "a number", "a string", "a list", "a dict",
      "a function"};
  return kNames[v_.index()];
}

bool operator==(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_real() || b.is_real()) return a.real() == b.real();
    return a.integer() == b.integer();
  }
  if (a.v_.index() != b.v_.index()) return false;
  a.count_work();
  if (a.is_string()) return a.string() == b.string();
  if (a.is_list()) return std::ranges::equal(a.list(), b.list());
  if (a.is_dict()) {
    const auto &x = a.dict(), &y = b.dict();
    if (&x == &y || x.is_namespace || y.is_namespace) return &x == &y;
    return x.items.size() == y.items.size() && std::ranges::all_of(x.items, [&](const auto& entry) {
             const Value* other = y.find(entry.first);
             return other && entry.second == *other;
           });
  }
  return a.is_none() || a.is_undefined();
}

std::string to_json(const Value& value, int64_t indent) { return json_text(value, indent, 0); }

Value binary(std::string_view op, const Value& a, const Value& b) {
  if (a.is_undefined()) undefined_used(a);
  if (b.is_undefined()) undefined_used(b);
  if (op == "~") return a.text() + b.text();
  if (op == "+" && a.is_string() && b.is_string()) return a.string() + b.string();
  if (op == "+" && a.is_list() && b.is_list()) {
    List all = a.list();
    all.insert(all.end(), b.list().begin(), b.list().end());
    return all;
  }
  if (!a.is_number() || !b.is_number())
    throw Error(invalid("{} {} {} has no meaning", a.kind(), op, b.kind()));
  const bool whole = !a.is_real() && !b.is_real();
  if (op == "/" || !whole) {
    const double x = a.real(), y = b.real();
    if (op == "+") return x + y;
    if (op == "-") return x - y;
    if (op == "*") return x * y;
    if (y == 0) throw Error(invalid("division by zero"));
    if (op == "/") return x / y;
    if (op == "//") return std::floor(x / y);
    return x - y * std::floor(x / y);
  }
  const int64_t x = a.integer(), y = b.integer();
  int64_t z = 0;
  bool fits = true;
  if (op == "+") fits = !__builtin_add_overflow(x, y, &z);
  if (op == "-") fits = !__builtin_sub_overflow(x, y, &z);
  if (op == "*") fits = !__builtin_mul_overflow(x, y, &z);
  if (op == "//" || op == "%") {
    if (y == 0) throw Error(invalid("division by zero"));
    if (y == -1) {  // the one quotient that does not fit
      fits = op == "%" || !__builtin_sub_overflow(int64_t{0}, x, &z);
    } else {
      const int64_t rest = x % y + (x % y != 0 && (x % y < 0) != (y < 0) ? y : 0);  // of the sign of y
      z = op == "%" ? rest : (x - rest) / y;
    }
  }
  if (!fits) throw Error(fail(Code::unsupported, "{} {} {} is beyond 64 bits", x, op, y));
  return z;
}

Value negated(const Value& x) { return binary("-", int64_t{0}, x); }

bool compared(std::string_view op, const Value& a, const Value& b) {
  if (op == "==") return a == b;
  if (op == "!=") return !(a == b);
  if (op == "in") return contains(b, a);
  if (op == "not in") return !contains(b, a);
  if (a.is_undefined()) undefined_used(a);
  if (b.is_undefined()) undefined_used(b);
  int order = 0;
  if (a.is_number() && b.is_number())
    order = a.real() < b.real() ? -1 : a.real() > b.real();
  else if (a.is_string() && b.is_string())
    order = a.string().compare(b.string());  // by code points, which is the order of UTF-8
  else
    throw Error(invalid("{} {} {} has no meaning", a.kind(), op, b.kind()));
  return op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0;
}

bool contains(const Value& all, const Value& one) {
  all.count_work();
  if (all.is_string() && one.is_string()) Meter::search(all.string(), one.string());
  if (all.is_string() && one.is_string()) return all.string().find(one.string()) != std::string::npos;
  if (all.is_list()) return std::ranges::find(all.list(), one) != all.list().end();
  if (all.is_dict()) return one.is_string() && all.dict().find(one.string());
  if (all.is_undefined()) return false;  // no elements
  throw Error(invalid("{} can't be in {}", one.kind(), all.kind()));
}

Value item(const Value& x, const Value& key) {
  if (x.is_undefined()) undefined_used(x);
  if (x.is_dict() && key.is_string()) {
    if (const Value* v = x.dict().find(key.string())) return *v;
  } else if ((x.is_list() || x.is_string()) && key.is_integer()) {
    const int64_t n = length_of(x), at = key.integer() < 0 ? key.integer() + n : key.integer();
    if (at >= 0 && at < n) {
      if (x.is_list()) return x.list()[static_cast<size_t>(at)];
      return to_utf8(from_utf8(x.string()).substr(static_cast<size_t>(at), 1));
    }
  }
  if (key.is_string() && key.string().size() <= 100) return Undefined{key.string()};
  return Undefined{key.is_number() ? fmt::format("{}[{}]", x.kind(), key.text())
                                   : fmt::format("an element of {}", x.kind())};
}

Value sliced(const Value& x, const Value& start, const Value& stop, const Value& step) {
  if (x.is_undefined()) undefined_used(x);
  if (!x.is_list() && !x.is_string()) throw Error(invalid("{} has no slices", x.kind()));
  const auto given = [](const Value& v) { return !v.is_none() && !v.is_undefined(); };
  const int64_t n = length_of(x), by = given(step) ? step.integer() : 1;
  if (by == 0) throw Error(invalid("a slice's step must not be 0"));
  const int64_t low = by > 0 ? 0 : -1, high = by > 0 ? n : n - 1;
  const auto bound = [&](const Value& v, int64_t otherwise) {
    if (!given(v)) return otherwise;
    const int64_t i = v.integer();
    return std::clamp(i < 0 ? std::max(i, -n - 1) + n : i, low, high);
  };
  const int64_t first = bound(start, by > 0 ? 0 : n - 1), last = bound(stop, by > 0 ? n : -1);
  std::vector<size_t> places;
  for (int64_t i = first; by > 0 ? i < last : i > last;) {
    places.push_back(static_cast<size_t>(i));
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  if (x.is_string()) {
    const std::u32string from = from_utf8(x.string());
    std::u32string to;
    for (const size_t i : places) to += from[i];
    return to_utf8(to);
  }
  List to;
  for (const size_t i : places) to.push_back(x.list()[i]);
  return to;
}

List elements(const Value& x) {
  x.count_work();
  if (x.is_undefined()) return {};
  if (x.is_list()) return x.list();
  List all;
  if (x.is_string()) {
    for (const char32_t c : from_utf8(x.string())) all.emplace_back(to_utf8({&c, 1}));
  } else if (x.is_dict() && !x.dict().is_namespace) {
    for (const auto& [name, value] : x.dict().items) all.emplace_back(name);
  } else {
    throw Error(invalid("{} has no elements to go through", x.kind()));
  }
  return all;
}

int64_t length_of(const Value& x) {
  if (x.is_undefined()) return 0;
  if (x.is_string()) x.count_work();
  if (x.is_string()) return static_cast<int64_t>(from_utf8(x.string()).size());
  if (x.is_list()) return static_cast<int64_t>(x.list().size());
  if (x.is_dict()) return static_cast<int64_t>(x.dict().items.size());
  throw Error(invalid("{} has no length", x.kind()));
}

}  // namespace weft::io::jinja
