#include <filesystem>

#include "cli/text/sentences.h"
#include "formats/file.h"
#include "formats/json_field.h"

// The files that PyPI's sentence-transformers writes beside a model.
namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using formats::Field;
using nlohmann::json;

std::string read_text(const std::string& path) {
  const auto bytes = value_or_raise(formats::read_file(path));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// modules.json is a list, and every other file an object.
Result<json> read_modules(const std::string& path) {
  return formats::parse_json_object(fmt::format("{{\"modules\":{}}}", read_text(path)), path);
}

Status read_longest(const fs::path& folder, SentenceConfig& config) {
  const auto path = (folder / "sentence_bert_config.json").string();
  if (formats::is_missing(path)) return {};
  WEFT_TRY(const json parsed, formats::read_json_object(path));
  const Field longest = Field(&parsed, path).at("max_seq_length");
  if (longest.null()) return {};
  WEFT_TRY(config.longest, longest.count());
  return {};
}

Status read_pooling(const fs::path& folder, SentenceConfig& config) {
  const auto path = (folder / "config.json").string();
  WEFT_TRY(const json parsed, formats::read_json_object(path));
  static const std::pair<std::string_view, Pooling> known[] = {
      {"pooling_mode_mean_tokens", Pooling::mean},
      {"pooling_mode_cls_token", Pooling::first},
      {"pooling_mode_max_tokens", Pooling::greatest}};
  int chosen = 0;
  for (const auto& [name, value] : parsed.items()) {
    const Field field(&value, fmt::format("{}.{}", path, name));
    if (!name.starts_with("pooling_mode")) continue;
    WEFT_TRY(const bool on, field.flag());
    if (!on) continue;
    const auto* way = std::ranges::find(known, name, &std::pair<std::string_view, Pooling>::first);
    if (way == std::end(known)) return field.unsupported("this pooling");
    if (++chosen > 1) return field.unsupported("more than one pooling");
    config.pooling = way->second;
  }
  return chosen == 1 ? Status() : fail(Code::unsupported, "{}: names no pooling that is known", path);
}

}  // namespace

Result<SentenceConfig> read_sentence_config(const std::string& folder) {
  SentenceConfig config;
  const fs::path base = folder;
  const auto path = (base / "modules.json").string();
  if (formats::is_missing(path)) return config;
  WEFT_TRY(const json parsed, read_modules(path));
  const Field modules = Field(&parsed, path).at("modules");
  WEFT_TRY(const size_t n, modules.list());
  config.normalized = false;
  for (size_t i = 0; i < n; ++i) {
    const Field module = modules.item(i);
    WEFT_TRY(const std::string type, module.at("type").text());
    WEFT_TRY(const std::string where, module.at("path").text());
    const std::string kind = type.substr(type.rfind('.') + 1);
    if (kind == "Transformer")
      WEFT_CHECK(read_longest(base / where, config));
    else if (kind == "Pooling")
      WEFT_CHECK(read_pooling(base / where, config));
    else if (kind == "Normalize")
      config.normalized = true;
    else
      return module.at("type").unsupported(fmt::format("module '{}'", type));
  }
  return config;
}

}  // namespace weft::cli
