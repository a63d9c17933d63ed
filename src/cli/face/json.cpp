#include "cli/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "formats/json.h"

namespace weft::cli {

using nlohmann::json;

std::string number_text(double value) {
  if (std::isfinite(value)) return json(value).dump();
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json::Json(json value) : value_(std::make_shared<json>(std::move(value))) {}
Json::Json() : Json(json()) {}
Json::Json(Truth value) : Json(json(value.value)) {}
Json::Json(Signed value) : Json(json(value.value)) {}
Json::Json(Unsigned value) : Json(json(value.value)) {}
Json::Json(double value) : Json(std::isfinite(value) ? json(value) : json(number_text(value))) {}
Json::Json(const char* text) : Json(json(text)) {}
Json::Json(const std::string& text) : Json(json(text)) {}
Json::Json(std::string_view text) : Json(json(text)) {}

Json::Json(std::initializer_list<Json> values) : Json(json::array()) {
  const bool members = std::ranges::all_of(values, [](const Json& v) {
    return v.value().is_array() && v.value().size() == 2 && v.value()[0].is_string();
  });
  if (members) *value_ = json::object();
  for (const Json& v : values) {
    if (members)
      (*value_)[v.value()[0].get_ref<const std::string&>()] = v.value()[1];
    else
      value_->push_back(v.value());
  }
}

Json Json::list() { return Json(json::array()); }
Json Json::object() { return Json(json::object()); }

void Json::push_back(const Json& value) { own().push_back(value.value()); }
void Json::set(const std::string& name, const Json& value) { own()[name] = value.value(); }

json& Json::own() {
  if (value_.use_count() > 1) value_ = std::make_shared<json>(*value_);
  return *value_;
}

std::string Json::text(int indent) const { return formats::json_text(*value_, indent); }

}  // namespace weft::cli
