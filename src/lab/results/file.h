#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "weft/status.h"

// Files of results: a line of JSON for each comparison, as result.schema.json says.
namespace weft::lab {

/// The results in a file, in its order.
///
/// Errors   unavailable where it can't be read; corrupt, with file and line, for an empty file, a line that
/// is
///          no JSON or cut off, another schema, or a member that is not what the schema wants.
Result<std::vector<nlohmann::json>> read_results(const std::string& path);

/// What a result's operation computes, whatever it is called: equal texts, equal calls.
std::string call_of(const nlohmann::json& result);
/// The last result of each call, in the order in which calls appear first.
std::vector<const nlohmann::json*> last_of_each(const std::vector<nlohmann::json>& results);

/// A result as a line, without its end: "schema" is the first key.
std::string line_of(const nlohmann::json& result);

/// A file to which results are added.
class ResultFile {
 public:
  /// Makes the file, or takes one that holds results. A pipe or a device is written as it is.
  ///
  /// Errors   as read_results, so that a file of something else is not spoilt; io where it can't be written.
  static Result<ResultFile> open(const std::string& path);
  ResultFile(ResultFile&& other) noexcept;
  ResultFile& operator=(ResultFile&&) = delete;
  ~ResultFile();

  /// Adds a line, at once. Errors: io.
  Status add(const nlohmann::json& result);

 private:
  ResultFile(std::string path, int file) : path_(std::move(path)), file_(file) {}
  std::string path_;
  int file_;
};

}  // namespace weft::lab
