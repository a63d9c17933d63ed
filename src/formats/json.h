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
/// Errors   corrupt, with `where`: for text that is not JSON, not an object, or nested too deeply, with the
/// byte;
///          and for an object with a repeated name, of which readers take different values.
Result<nlohmann::json> parse_json_object(std::string_view text, const std::string& where);

/// Can JSON hold this text? It takes UTF-8 only.
bool is_json_text(const std::string& text);
/// A value as text: on one line, or with lists and objects indented; U+FFFD stands for what is not UTF-8.
std::string json_text(const nlohmann::json& value, int indent = -1);
/// The same of a string, for messages: in quotation marks.
inline std::string json_quoted(const std::string& text) { return json_text(text); }

/// The same of a file; unavailable when it can't be read.
Result<nlohmann::json> read_json_object(const std::string& path);

}  // namespace weft::formats
