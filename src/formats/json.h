#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "weft/status.h"

namespace weft::formats {

/// The deepest nesting of lists and objects. Our files have at most ten; copying or writing a value takes
/// stack for each level.
inline constexpr int kDeepestJson = 100;

/// Parses an untrusted JSON object; the only place that does.
///
/// Errors   corrupt, with `where`: for text that is not JSON, not an object, or nested too deeply, with the
/// byte;
///          and for an object with a repeated name, for which readers take different values.
Result<nlohmann::json> parse_json_object(std::string_view text, const std::string& where);

/// Can JSON hold this text? It takes UTF-8 only.
bool is_json_text(const std::string& text);
/// A value as text: on one line, or with lists and objects indented; invalid UTF-8 becomes U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = -1);
/// A string as text, for messages: in quotation marks.
std::string json_quoted(const std::string& text);

/// The object in a file; unavailable if it can't be read.
Result<nlohmann::json> read_json_object(const std::string& path);

}  // namespace weft::formats
