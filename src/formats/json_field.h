#pragma once
#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/shown.h"
#include "formats/json.h"

namespace weft::formats {

/// A JSON value and its path in the file, for errors that name the field.
class Field {
 public:
  Field(const nlohmann::json* value, std::string where) : value_(value), where_(std::move(where)) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& where() const { return where_; }
  bool null() const { return value_->is_null(); }
  Field item(size_t i) const { return {&(*value_)[i], fmt::format("{}[{}]", where_, i)}; }
  /// A member; null if it is missing.
  Field at(const char* name) const {
    static const nlohmann::json none;
    const auto found = value_->is_object() ? value_->find(name) : value_->end();
    return {value_->is_object() && found != value_->end() ? &*found : &none, where_ + "." + name};
  }
  Status wrong(std::string_view wanted) const {
    return fail(Code::corrupt, "{}: wanted {}, got {}", where_, wanted, shown(json_text(*value_), 60));
  }
  Status unsupported(std::string_view what) const {
    return fail(Code::unsupported, "{}: {} is not supported", where_, what);
  }

  Result<std::string> text() const {
    if (!value_->is_string()) return wrong("a text");
    return value_->get<std::string>();
  }
  Result<bool> flag(std::optional<bool> otherwise = {}) const {
    if (null() && otherwise) return *otherwise;
    if (!value_->is_boolean()) return wrong("true or false");
    return value_->get<bool>();
  }
  Result<int64_t> count() const {
    if (!value_->is_number_integer() || *value_ < 0 || *value_ > INT32_MAX)
      return wrong("a whole number that is not negative");
    return value_->get<int64_t>();
  }
  /// One character.
  Result<std::string> character() const {
    WEFT_TRY(std::string s, text());
    const auto starts = std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xC0) != 0x80; });
    if (starts != 1) return wrong("one character");
    return s;
  }
  /// Checks that an object has no other members than these.
  Status only(std::initializer_list<std::string_view> names) const {
    if (!value_->is_object()) return wrong("an object");
    for (const auto& [name, member] : value_->items())
      if (std::find(names.begin(), names.end(), name) == names.end())
        return fail(Code::unsupported, "{}: field '{}' is not known", where_, shown(name));
    return {};
  }
  Result<size_t> list() const {
    if (!value_->is_array()) return wrong("a list");
    return value_->size();
  }

 private:
  const nlohmann::json* value_;
  std::string where_;
};

}  // namespace weft::formats
