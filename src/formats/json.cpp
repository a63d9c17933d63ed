#include "formats/json.h"

#include "formats/file.h"

namespace weft::formats {
namespace {

using nlohmann::json;

// Where the text is nested too deeply; 0 if nowhere. What the parser reads before it finds an error,
// this reads as it does.
size_t too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return i + 1;  // as the parser counts
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return 0;
}

}  // namespace

Result<json> parse_json_object(std::string_view text, const std::string& where,
                               const json::parser_callback_t& watch) {
  if (const size_t at = too_deep(text); at > 0)
    return fail(Code::corrupt, "{}: holds no JSON object: byte {} is more than {} lists and objects deep",
                where, at, kDeepestJson);
  try {
    json root = json::parse(text, watch);
    if (root.is_object()) return root;
    return fail(Code::corrupt, "{}: holds no JSON object: it is {}", where, root.type_name());
  } catch (const json::parse_error& e) {
    return fail(Code::corrupt, "{}: holds no JSON object: byte {} is not as JSON wants it", where, e.byte);
  } catch (const json::out_of_range&) {
    return fail(Code::corrupt, "{}: holds no JSON object: a number in it is beyond 64 bits", where);
  }
}

Result<json> read_json_object(const std::string& path) {
  WEFT_TRY(const auto bytes, read_file(path));
  return parse_json_object({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace weft::formats
