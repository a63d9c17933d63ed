#include "lab/results/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "formats/file.h"
#include "formats/json.h"
#include "lab/results/schema.h"

namespace weft::lab {
namespace {

using nlohmann::json;

// "weft.lab/1" of the schema.
std::string schema_name() {
  return result_schema().at(json::json_pointer("/properties/schema/const")).get<std::string>();
}

Result<json> parse(std::string_view line, const std::string& where) {
  auto parsed = formats::parse_json_object(line, where);
  if (!parsed.ok())
    return fail(Code::corrupt, "{}; wanted a line that weft lab --out wrote", parsed.status().message());
  auto result = std::move(parsed).value();
  const auto name = result.find("schema");
  if (name == result.end() || *name != schema_name())
    return fail(Code::version,
                "{}: got {}, wanted a result of weft lab with \"schema\": \"{}\"; name a file that "
                "weft lab --out of this version wrote",
                where, name == result.end() ? "no schema" : "schema " + name->dump(), schema_name());
  WEFT_CHECK(fits(result, result_schema(), where + ": result"));
  return result;
}

}  // namespace

Result<std::vector<json>> read_results(const std::string& path) {
  WEFT_TRY(const auto bytes, formats::read_file(path));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<json> all;
  size_t number = 0;
  for (size_t from = 0; from < text.size();) {
    const auto where = fmt::format("{}:{}", path, ++number);
    const size_t end = text.find('\n', from);
    if (end == text.npos)
      return fail(
          Code::corrupt,
          "{}: got a last line of {} bytes without an end, wanted a whole one; it was cut off while it "
          "was written: remove it",
          where, text.size() - from);
    WEFT_TRY(auto result, parse(text.substr(from, end - from), where));
    all.push_back(std::move(result));
    from = end + 1;
  }
  if (all.empty())
    return fail(Code::corrupt, "{}:1: got an empty file, wanted results of weft lab --out", path);
  return all;
}

std::string call_of(const json& result) {
  const auto& o = result.at("operation");
  return json{{"op", o.at("op")}, {"inputs", o.at("inputs")}, {"attrs", o.at("attrs")}}.dump();
}

std::vector<const json*> last_of_each(const std::vector<json>& results) {
  std::map<std::string, size_t> at;
  std::vector<const json*> all;
  for (const json& r : results) {
    const auto [place, is_new] = at.emplace(call_of(r), all.size());
    if (is_new)
      all.push_back(&r);
    else
      all[place->second] = &r;
  }
  return all;
}

std::string line_of(const json& result) {
  auto others = result;
  others.erase("schema");
  return fmt::format("{{\"schema\":{},{}", result.at("schema").dump(), formats::json_text(others).substr(1));
}

Result<ResultFile> ResultFile::open(const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_regular_file(path, none) && std::filesystem::file_size(path, none) > 0)
    WEFT_CHECK(read_results(path).take_status());
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return fail(Code::io, "can't write '{}': {}", path, std::strerror(errno));
  return ResultFile(path, file);
}

ResultFile::ResultFile(ResultFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}
ResultFile::~ResultFile() {
  if (file_ >= 0) ::close(file_);
}

Status ResultFile::add(const json& result) {
  const std::string line = line_of(result) + "\n";
  for (size_t at = 0; at < line.size();) {
    const ssize_t n = ::write(file_, line.data() + at, line.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(Code::io, "can't write '{}': {}", path_, std::strerror(errno));
    at += static_cast<size_t>(n);
  }
  return {};
}

}  // namespace weft::lab
