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

/// Counts the bytes of values made on its thread while it lives, and raises if there are too many: an
/// untrusted template may make ever larger values, or traverse large ones again and again.
class Meter {
 public:
  static constexpr size_t kMost = size_t{1} << 26;      // at a time
  static constexpr size_t kMostWork = size_t{1} << 30;  // made or traversed, in total
  Meter();
  ~Meter();
  Meter(const Meter&) = delete;

  /// Counts bytes that are made or traversed.
  static void work(size_t bytes);
  /// The same for a search, whose worst case is a long `part` that matches everywhere but at its end.
  static void search(std::string_view text, std::string_view part) { work(text.size() * (part.size() / 64)); }

  /// Counts bytes as long as they are in use.
  class Share {
   public:
    explicit Share(size_t bytes);
    ~Share();
    Share(const Share&) = delete;

   private:
    Meter* meter_;  // null if there was none
    size_t bytes_;
  };

 private:
  Meter* outer_;
  size_t held_ = 0, worked_ = 0;
};

/// The error for a value that is larger than a Meter allows.
Error too_large();

/// The size of a value with everything in it, counting shared parts each time. Bounded, and so are the time
/// and the stack to traverse it.
struct Extent {
  size_t bytes = 0;
  int depth = 0;
  bool has_namespace = false;

  /// Raises if they are too large together.
  Extent& operator+=(const Extent& part);
};

/// Names and values in insertion order.
struct Dict {
  std::vector<std::pair<std::string, Value>> items;
  bool is_namespace = false;  ///< its items may be set

  const Value* find(std::string_view name) const;
  void set(const std::string& name, Value value);
};

/// The arguments of a call.
struct Arguments {
  List positional;
  std::vector<std::pair<std::string, Value>> named;

  /// The argument at this position or of this name; null if absent.
  const Value* get(size_t place, std::string_view name) const;
  /// Raises if there are more than `most` positional ones.
  void expect_count(std::string_view what, size_t most) const;
  /// The same, and if a named one is not in `names`.
  void expect(std::string_view what, size_t most, std::initializer_list<std::string_view> names = {}) const;
};
using Function = std::function<Value(const Arguments&)>;

/// The value of an undefined name.
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
  Value(std::string s);                                                      // NOLINT
  Value(std::string_view s) : Value(std::string(s)) {}                       // NOLINT
  Value(const char* s) : Value(std::string(s)) {}                            // NOLINT
  Value(List l);                                                             // NOLINT
  Value(Dict d);                                                             // NOLINT
  Value(Function f) : v_(std::make_shared<const Function>(std::move(f))) {}  // NOLINT

  bool is_undefined() const { return std::holds_alternative<Undefined>(v_); }
  bool is_none() const { return std::holds_alternative<std::nullptr_t>(v_); }
  bool is_bool() const { return std::holds_alternative<bool>(v_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(v_); }
  bool is_real() const { return std::holds_alternative<double>(v_); }
  bool is_number() const { return is_bool() || is_integer() || is_real(); }
  bool is_string() const { return std::holds_alternative<Shared<std::string>>(v_); }
  bool is_list() const { return std::holds_alternative<Shared<List>>(v_); }
  bool is_dict() const { return std::holds_alternative<Shared<Dict>>(v_); }
  bool is_function() const { return std::holds_alternative<std::shared_ptr<const Function>>(v_); }

  const std::string& string() const { return std::get<Shared<std::string>>(v_)->content; }
  const List& list() const { return std::get<Shared<List>>(v_)->content; }
  const Dict& dict() const { return std::get<Shared<Dict>>(v_)->content; }
  const Function& function() const { return *std::get<std::shared_ptr<const Function>>(v_); }
  const Undefined& undefined() const { return std::get<Undefined>(v_); }
  /// A bool counts as 0 or 1. Raises for anything but an integer.
  int64_t integer() const;
  double real() const;  ///< of a number

  /// Sets an item of a namespace, visible in every scope.
  void set_member(const std::string& name, Value value) const;

  Extent extent() const;
  /// Counts the work to traverse it once, not recursively.
  void count_work() const;
  bool truth() const;
  /// As Python's str(), and repr() where it is part of another value.
  std::string text() const;
  std::string quoted() const;
  /// "a string", "a number": what error messages say.
  const char* kind() const;
  friend bool operator==(const Value& a, const Value& b);

 private:
  /// Data too large to be copied with each value.
  template <class T>
  struct Counted {
    Counted(T made, const Extent& all, size_t bytes)
        : content(std::move(made)), extent(all), share(sizeof(Counted) + bytes) {}
    T content;
    const Extent extent;
    const Meter::Share share;
  };
  template <class T>
  using Shared = std::shared_ptr<Counted<T>>;

  std::variant<Undefined, std::nullptr_t, bool, int64_t, double, Shared<std::string>, Shared<List>,
               Shared<Dict>, std::shared_ptr<const Function>>
      v_;
};

/// As Python's json.dumps(value, ensure_ascii=False, indent=...); a negative indent puts all on one line.
std::string to_json(const Value& value, int64_t indent);

// Operators; each raises where Python would, with its own message.
Value binary(std::string_view op, const Value& a, const Value& b);
Value negated(const Value& x);
bool compared(std::string_view op, const Value& a, const Value& b);
bool contains(const Value& all, const Value& one);
/// x[i], and x.name if it is no method.
Value item(const Value& x, const Value& key);
/// x[start:stop:step]; bounds that are none or undefined are the ends.
Value sliced(const Value& x, const Value& start, const Value& stop, const Value& step);
/// The elements that a loop iterates over.
List elements(const Value& x);
int64_t length_of(const Value& x);

// Lookups by name; each raises `unsupported` for an unknown name.
Value call_method(const Value& x, const std::string& name, const Arguments& a);
Value call_filter(const std::string& name, const Value& x, const Arguments& a);
bool call_test(const std::string& name, const Value& x, const Arguments& a);
/// Whether they exist: a template is refused before it runs.
bool is_filter(const std::string& name);
bool is_test(const std::string& name);
bool is_method(const std::string& name);

}  // namespace weft::io::jinja
