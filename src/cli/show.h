#pragma once
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "cli/json.h"
#include "weft/ledger.h"
#include "weft/status.h"

// Output of the subcommands: plain lines, or with --json one JSON object per line.
namespace weft::cli {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

/// A remark for people, beside the output.
void note(const std::string& words);

/// 1234567 as "1,234,567".
std::string grouped(int64_t n);
/// "1 file", "2 files".
std::string counted(size_t n, const std::string& what);

/// On one line; invalid UTF-8 in names becomes U+FFFD.
std::string line_of(const Json& object);
/// The same, indented.
std::string page_of(const Json& all);
Json ledger_json(const std::vector<LedgerRow>& rows);

/// Facts for people or, with --json, for programs.
class Show {
 public:
  explicit Show(bool json) : json_(json) {}

  /// A fact: as JSON, or in words.
  void result(const Json& json, const std::string& words);

 private:
  bool json_;
};

}  // namespace weft::cli
