#pragma once
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/json.h"
#include "weft/ledger.h"
#include "weft/status.h"

// Output of the subcommands: plain lines, or with --json one JSON object per line.
namespace weft::cli {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

/// A remark for people, beside the output.
inline void note(const std::string& words) { fmt::print(stderr, "weft: note: {}\n", words); }

/// 1234567 as "1,234,567".
inline std::string grouped(int64_t n) {
  const std::string digits = fmt::format("{}", n);
  std::string s;
  for (size_t i = 0; i < digits.size(); ++i) {
    const size_t left = digits.size() - i;
    if (!s.empty() && s.back() != '-' && left % 3 == 0) s += ',';
    s += digits[i];
  }
  return s;
}

/// On one line; invalid UTF-8 in names becomes U+FFFD.
inline std::string line_of(const nlohmann::json& object) { return formats::json_text(object); }
/// The same, indented.
inline std::string page_of(const nlohmann::json& all) { return formats::json_text(all, 2); }
/// "1 file", "2 files".
inline std::string counted(size_t n, const std::string& what) {
  return fmt::format("{} {}{}", grouped(static_cast<int64_t>(n)), what, n == 1 ? "" : "s");
}

inline nlohmann::json ledger_json(const std::vector<LedgerRow>& rows) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& r : rows)
    out.push_back({{"device", r.device},
                   {"op", r.op},
                   {"kernel", r.kernel},
                   {"why", r.why},
                   {"calls", r.calls},
                   {"bytes", r.bytes}});
  return out;
}

/// Facts for people or, with --json, for programs.
class Show {
 public:
  explicit Show(bool json) : json_(json) {}

  /// A fact: as JSON, or in words.
  void result(const nlohmann::json& json, const std::string& words) { line(json_ ? line_of(json) : words); }

 private:
  // Flushed, so that a pipe shows it when it happens.
  static void line(const std::string& text) {
    fmt::print("{}\n", text);
    std::fflush(stdout);
  }

  bool json_;
};

}  // namespace weft::cli
