#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "weft/status.h"

namespace weft::formats {

/// Lists and objects in one another, at most. Nothing that is read here has more than ten; what is done with
/// a value (to copy it, to write it) takes some of the stack for each.
inline constexpr int kDeepestJson = 100;

/// A JSON object that comes from outside: all such text is parsed here.
///
/// Errors   corrupt, with `where` and the byte, for what is no JSON, no object, or nested deeper than that,
/// and
///          where an object has a name twice: readers differ in which of its values they take.
Result<nlohmann::json> parse_json_object(std::string_view text, const std::string& where);

/// Can JSON hold this text? It takes UTF-8 only.
bool is_json_text(const std::string& text);
/// For messages: in quotation marks, with U+FFFD for what is no UTF-8.
std::string json_quoted(const std::string& text);

/// The same of a file; unavailable when it can't be read.
Result<nlohmann::json> read_json_object(const std::string& path);

}  // namespace weft::formats
