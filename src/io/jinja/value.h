#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weft/status.h"

// Values of chat templates, as Python has them.
namespace weft::io::jinja {

class Value;
using List = std::vector<Value>;

/// Names and values in the order in which they came.
struct Dict {
  std::vector<std::pair<std::string, Value>> items;
  bool is_namespace = false;  ///< its items may be set

  const Value* find(std::string_view name) const;
  void set(const std::string& name, Value value);
};

/// What a call hands over.
struct Arguments {
  List positional;
  std::vector<std::pair<std::string, Value>> named;

  /// The argument of this place or name; null where it was not given.
  const Value* get(size_t place, std::string_view name) const;
  /// Raises where there are more than `most` without names.
  void expect_count(std::string_view what, size_t most) const;
  /// The same, and where a named one is not in `names`.
  void expect(std::string_view what, size_t most, std::initializer_list<std::string_view> names = {}) const;
};
using Function = std::function<Value(const Arguments&)>;

/// What a template says of something that is not there.
struct Undefined {
  std::string name;
};

class Value {
 public:
  Value() : v_(Undefined{}) {}
  Value(Undefined u) : v_(std::move(u)) {}                                   // NOLINT: implicit on purpose
  Value(std::nullptr_t) : v_(nullptr) {}                                     // NOLINT
  Value(bool b) : v_(b) {}                                                   // NOLINT
  Value(int64_t i) : v_(i) {}                                                // NOLINT
  Value(double d) : v_(d) {}                                                 // NOLINT
  Value(std::string s) : v_(std::move(s)) {}                                 // NOLINT
  Value(std::string_view s) : v_(std::string(s)) {}                          // NOLINT
  Value(const char* s) : v_(std::string(s)) {}                               // NOLINT
  Value(List l) : v_(std::make_shared<const List>(std::move(l))) {}          // NOLINT
  Value(Dict d) : v_(std::make_shared<Dict>(std::move(d))) {}                // NOLINT
  Value(Function f) : v_(std::make_shared<const Function>(std::move(f))) {}  // NOLINT

  bool is_undefined() const { return std::holds_alternative<Undefined>(v_); }
  bool is_none() const { return std::holds_alternative<std::nullptr_t>(v_); }
  bool is_bool() const { return std::holds_alternative<bool>(v_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(v_); }
  bool is_real() const { return std::holds_alternative<double>(v_); }
  bool is_number() const { return is_bool() || is_integer() || is_real(); }
  bool is_string() const { return std::holds_alternative<std::string>(v_); }
  bool is_list() const { return std::holds_alternative<std::shared_ptr<const List>>(v_); }
  bool is_dict() const { return std::holds_alternative<std::shared_ptr<Dict>>(v_); }
  bool is_function() const { return std::holds_alternative<std::shared_ptr<const Function>>(v_); }

  const std::string& string() const { return std::get<std::string>(v_); }
  const List& list() const { return *std::get<std::shared_ptr<const List>>(v_); }
  Dict& dict() const { return *std::get<std::shared_ptr<Dict>>(v_); }
  const Function& function() const { return *std::get<std::shared_ptr<const Function>>(v_); }
  const Undefined& undefined() const { return std::get<Undefined>(v_); }
  /// A bool counts as 0 or 1. Raises for what is no whole number.
  int64_t integer() const;
  double real() const;  ///< of a number

  bool truth() const;
  /// As Python's str(), and repr() where it is part of another value.
  std::string text() const;
  std::string quoted() const;
  /// "a string", "a number": what error messages say.
  const char* kind() const;
  friend bool operator==(const Value& a, const Value& b);

 private:
  std::variant<Undefined, std::nullptr_t, bool, int64_t, double, std::string, std::shared_ptr<const List>,
               std::shared_ptr<Dict>, std::shared_ptr<const Function>>
      v_;
};

/// As Python's json.dumps(value, ensure_ascii=False, indent=...); a negative indent puts all on one line.
std::string to_json(const Value& value, int64_t indent);

// What operators mean; each raises what Python would, in words of its own.
Value binary(std::string_view op, const Value& a, const Value& b);
Value negated(const Value& x);
bool compared(std::string_view op, const Value& a, const Value& b);
bool contains(const Value& all, const Value& one);
/// x[i], and x.name where it is no method.
Value item(const Value& x, const Value& key);
/// x[start:stop:step]; bounds that are none or undefined are the ends.
Value sliced(const Value& x, const Value& start, const Value& stop, const Value& step);
/// The elements that a loop over it sees.
List elements(const Value& x);
int64_t length_of(const Value& x);

// What is there by name; each raises `unsupported` for a name that it does not know.
Value call_method(const Value& x, const std::string& name, const Arguments& a);
Value call_filter(const std::string& name, const Value& x, const Arguments& a);
bool call_test(const std::string& name, const Value& x, const Arguments& a);
/// Do they exist? A template is refused before it runs.
bool is_filter(const std::string& name);
bool is_test(const std::string& name);
bool is_method(const std::string& name);

}  // namespace weft::io::jinja
