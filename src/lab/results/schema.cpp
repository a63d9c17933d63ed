#include "lab/results/schema.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "result_schema_json.h"

namespace weft::lab {
namespace {

using nlohmann::json;

bool is_of_type(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  return type == "null" && value.is_null();
}

// What is there, short enough for a message.
std::string shown(const json& value) {
  const auto text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

Status wrong(const std::string& where, const json& got, const std::string& wanted) {
  return fail(Code::corrupt, "{}: got {}, wanted {}", where, shown(got), wanted);
}

Status type_fits(const json& value, const json& type, const std::string& where) {
  const auto types = type.is_array() ? type.get<std::vector<std::string>>()
                                     : std::vector<std::string>{type.get<std::string>()};
  std::string wanted;
  for (const auto& t : types) {
    if (is_of_type(value, t)) return {};
    wanted += (wanted.empty() ? "" : " or ") + t;
  }
  return wrong(where, value, wanted);
}

Status members_fit(const json& value, const json& schema, const std::string& where) {
  if (!value.is_object()) return {};
  if (const auto required = schema.find("required"); required != schema.end())
    for (const auto& name : *required)
      if (!value.contains(name.get<std::string>()))
        return wrong(where, value, fmt::format("a member {}", name.dump()));
  if (const auto properties = schema.find("properties"); properties != schema.end())
    for (const auto& [name, member] : properties->items())
      if (const auto at = value.find(name); at != value.end())
        WEFT_CHECK(fits(*at, member, where + "." + name));
  if (const auto others = schema.find("additionalProperties"); others != schema.end())
    for (const auto& [name, member] : value.items())
      if (!schema.contains("properties") || !schema["properties"].contains(name))
        WEFT_CHECK(fits(member, *others, where + "." + name));
  return {};
}

Status items_fit(const json& value, const json& schema, const std::string& where) {
  const auto items = schema.find("items");
  if (items == schema.end() || !value.is_array()) return {};
  for (size_t i = 0; i < value.size(); ++i)
    WEFT_CHECK(fits(value[i], *items, fmt::format("{}[{}]", where, i)));
  return {};
}

// A word that is passed over would make a schema that judges less than it says.
Status known_words_only(const json& schema, const std::string& where) {
  constexpr std::string_view kKnown[] = {
      "$schema", "$defs",   "$ref",     "title",      "description",
      "type",    "items",   "required", "properties", "additionalProperties",
      "const",   "minimum", "enum"};
  for (const auto& [word, unused] : schema.items())
    if (std::ranges::find(kKnown, word) == std::end(kKnown))
      return fail(Code::internal, "the schema of {} says '{}', which is not looked at", where, word);
  return {};
}

}  // namespace

const json& result_schema() {
  static const json schema = json::parse(result_schema_json);
  return schema;
}

Status fits(const json& value, const json& schema, const std::string& where) {
  WEFT_CHECK(known_words_only(schema, where));
  if (const auto ref = schema.find("$ref"); ref != schema.end())
    return fits(value, result_schema().at(json::json_pointer(ref->get<std::string>().substr(1))), where);
  if (const auto one = schema.find("const"); one != schema.end() && value != *one)
    return wrong(where, value, one->dump());
  if (const auto any = schema.find("enum");
      any != schema.end() && std::ranges::find(*any, value) == any->end())
    return wrong(where, value, "one of " + any->dump());
  if (const auto type = schema.find("type"); type != schema.end()) WEFT_CHECK(type_fits(value, *type, where));
  if (const auto least = schema.find("minimum");
      least != schema.end() && value.is_number() && value.get<double>() < least->get<double>())
    return wrong(where, value, "at least " + least->dump());
  WEFT_CHECK(members_fit(value, schema, where));
  return items_fit(value, schema, where);
}

}  // namespace weft::lab
