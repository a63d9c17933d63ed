#include "formats/json.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/shown.h"
#include "formats/file.h"

namespace weft::formats {
namespace {

using nlohmann::json;

// The position at which text is nested too deeply; 0 if none. Reads text up to the first error as the parser
// does.
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

/// Does an object have a name twice? The library silently keeps the last value, but its parser reports each
/// name. Storing all names takes as long as parsing, so they are only counted until a repetition is known.
class Names {
 public:
  explicit Names(bool kept) : kept_(kept) {}
  bool operator()(int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) objects_.emplace_back();
    if (event == json::parse_event_t::key) {
      const auto& name = value.get_ref<const std::string&>();
      ++objects_.back().count;
      if (kept_ && !objects_.back().names.insert(name).second) twice = name;
    }
    if (event == json::parse_event_t::object_end) {
      repeats |= objects_.back().count != value.size();
      objects_.pop_back();
    }
    return true;
  }
  bool repeats = false;
  std::string twice;

 private:
  struct Object {
    size_t count = 0;
    std::set<std::string> names;
  };
  bool kept_;
  std::vector<Object> objects_;
};

std::string name_that_repeats(std::string_view text) {
  Names names(true);
  [[maybe_unused]] const json parsed = json::parse(text, std::ref(names));
  return names.twice;
}

}  // namespace

bool is_json_text(const std::string& text) {
  try {
    (void)json(text).dump();
    return true;
  } catch (const json::type_error&) {
    return false;
  }
}
std::string json_text(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}
std::string json_quoted(const std::string& text) { return json_text(text); }

Result<json> parse_json_object(std::string_view text, const std::string& where) {
  if (const size_t at = too_deep(text); at > 0)
    return fail(Code::corrupt, "{}: holds no JSON object: byte {} is more than {} lists and objects deep",
                where, at, kDeepestJson);
  try {
    Names names(false);
    json root = json::parse(text, std::ref(names));
    if (names.repeats)
      return fail(Code::corrupt, "{}: the name {} appears twice", where,
                  shown(json_quoted(name_that_repeats(text))));
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
