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

/// Counts the bytes that values hold which are made while it lives, on its thread, and raises where they are
/// too many: a template comes from anywhere, and may make ever larger ones, or go through large ones ever
/// again.
class Meter {
 public:
  static constexpr size_t kMost = size_t{1} << 26;      // at a time
  static constexpr size_t kMostWork = size_t{1} << 30;  // made or gone through, in all
  Meter();
  ~Meter();
  Meter(const Meter&) = delete;

  /// Counts bytes that are made or gone through.
  static void work(size_t bytes);
  /// The same of a search, which takes longest where a long `part` is there at each place but for its end.
  static void search(std::string_view text, std::string_view part) { work(text.size() * (part.size() / 64)); }

  /// Counts something for as long as that is there.
  class Share {
   public:
    explicit Share(size_t bytes);
    ~Share();
    Share(const Share&) = delete;

   private:
    Meter* meter_;  // null where none was alive
    size_t bytes_;
  };

 private:
  Meter* outer_;
  size_t held_ = 0, worked_ = 0;
};

/// What is said of a value, or of what one would hold, that is larger than a Meter takes.
Error too_large();

/// How large a value is with all that lies in it, written out: as often as it is there, not as often as it is
/// stored. It is bounded, and with it the time and the stack that going through it takes.
struct Extent {
  size_t bytes = 0;
  int depth = 0;
  bool has_namespace = false;

  /// Raises where they are too large together.
  Extent& operator+=(const Extent& part);
};

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
  /// A bool counts as 0 or 1. Raises for what is no whole number.
  int64_t integer() const;
  double real() const;  ///< of a number

  /// Sets an item of a namespace, wherever that is known.
  void set_member(const std::string& name, Value value) const;

  Extent extent() const;
  /// Counts what it takes to go through it once, not through what lies in it.
  void count_work() const;
  bool truth() const;
  /// As Python's str(), and repr() where it is part of another value.
  std::string text() const;
  std::string quoted() const;
  /// "a string", "a number": what error messages say.
  const char* kind() const;
  friend bool operator==(const Value& a, const Value& b);

 private:
  /// What is too large to be copied with each value.
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
