#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <ranges>
#include <string>
#include <string_view>

namespace weft::cli {

/// A number as JSON has it, or "nan", "inf" or "-inf".
std::string number_text(double value);

/// A value that is printed as JSON; wraps nlohmann::json, which every subcommand would otherwise compile
/// again. Copies share what they hold until one is changed.
class Json {
 public:
  Json();  ///< null
  Json(std::same_as<bool> auto value) : Json(Truth{value}) {}
  Json(std::signed_integral auto value) : Json(Signed{value}) {}
  Json(std::unsigned_integral auto value)
    requires(!std::same_as<decltype(value), bool>)
      : Json(Unsigned{value}) {}
  /// JSON has no numbers that are not finite: those become the texts of number_text.
  Json(double value);
  Json(const char* text);
  Json(const std::string& text);
  Json(std::string_view text);
  /// As nlohmann's: an object where each of the values is a list of a text and a value, else a list.
  Json(std::initializer_list<Json> values);
  /// A list.
  template <std::ranges::input_range R>
    requires(!std::convertible_to<const R&, std::string_view> && !std::same_as<R, Json>)
  Json(const R& values) : Json(list()) {
    for (const auto& v : values) push_back(v);
  }

  static Json list();
  static Json object();

  /// Behind the other values of a list.
  void push_back(const Json& value);
  /// A member of an object; one of this name is replaced.
  void set(const std::string& name, const Json& value);

  const nlohmann::json& value() const { return *value_; }
  /// On one line, or with lists and objects indented; invalid UTF-8 becomes U+FFFD.
  std::string text(int indent = -1) const;

 private:
  struct Truth {
    bool value;
  };
  struct Signed {
    int64_t value;
  };
  struct Unsigned {
    uint64_t value;
  };
  explicit Json(Truth value);
  explicit Json(Signed value);
  explicit Json(Unsigned value);
  explicit Json(nlohmann::json value);
  nlohmann::json& own();

  std::shared_ptr<nlohmann::json> value_;
};

}  // namespace weft::cli
