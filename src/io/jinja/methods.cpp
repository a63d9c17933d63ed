#include "io/jinja/library.h"

// Methods of dicts, and the dispatch to those of strings.
namespace weft::io::jinja {
namespace {

const Dict& dict_of(const char* what, const Value& x) {
  if (!x.is_dict()) throw Error(invalid("{}: wanted a dict, got {}", what, x.kind()));
  return x.dict();
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

const Table& dict_methods() {
  static const Table table = {{"items", items}, {"keys", keys}, {"values", values}, {"get", get}};
  return table;
}

}  // namespace

Value items(const Value& x, const Arguments& a) {
  a.expect("items", 0);
  if (x.is_undefined()) return List{};
  List all;
  for (const auto& [name, value] : dict_of("items", x).items) all.emplace_back(List{Value(name), value});
  return all;
}

Call known(const Table& table, const char* what, const std::string& name) {
  const auto at = table.find(name);
  if (at == table.end()) throw Error(fail(Code::unsupported, "there is no {} '{}' here", what, name));
  return at->second;
}

bool is_method(const std::string& name) {
  return string_methods().contains(name) || dict_methods().contains(name);
}

Value call_method(const Value& x, const std::string& name, const Arguments& a) {
  if (x.is_undefined()) throw Error(invalid("'{}' is undefined", x.undefined().name));
  const Table& all = x.is_dict() ? dict_methods() : string_methods();
  if (is_method(name) && (!(x.is_string() || x.is_dict()) || !all.contains(name)))
    throw Error(invalid("{} has no method '{}'", x.kind(), name));
  x.count_work();
  return known(all, "method", name)(x, a);
}

}  // namespace weft::io::jinja
