#pragma once
#include <nlohmann/json_fwd.hpp>

#include "weft/status.h"

// JSON Schema, as far as result.schema.json uses it.
namespace weft::lab {

/// What a line of a result file is: result.schema.json.
const nlohmann::json& result_schema();

/// Whether `value` is what `schema` wants; of the standard: type, const, enum, minimum, required, properties,
/// items, and references to `$defs` of result_schema().
///
/// Errors   corrupt, with the place below `where`, what is there and what is wanted; internal for a schema
///          that says anything else.
Status fits(const nlohmann::json& value, const nlohmann::json& schema, const std::string& where);

}  // namespace weft::lab
