#pragma once
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "weft/ledger.h"
#include "weft/status.h"

// What the subcommands print: one live line in a terminal, plain lines elsewhere, one JSON object a line with
// --json.
namespace weft::cli {

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

struct Progress {
  int64_t step = 0;
  double loss = 0;
  double per_second = 0;  ///< characters learnt from
  double left = 0;        ///< seconds
};

class Show {
 public:
  explicit Show(bool json) : json_(json), live_(!json && ::isatty(STDOUT_FILENO)) {}

  /// Shows it when the last showing is long enough ago; always when `last`.
  void progress(const Progress& p, bool last) {
    const auto now = std::chrono::steady_clock::now();
    if (!last && shown_ &&
        now - when_ < (live_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(5000)))
      return;
    shown_ = true, when_ = now;
    if (json_)
      return line(nlohmann::json{
          {"step", p.step},
          {"loss", p.loss},
          {"characters_per_second", p.per_second},
          {"seconds_left",
           p.left}}.dump());
    const auto left = static_cast<int64_t>(p.left + 0.5);
    const std::string text =
        fmt::format("step {:>6}   loss {:.4f}   {:>7} characters/s   {}:{:02} left", p.step, p.loss,
                    grouped(static_cast<int64_t>(p.per_second)), left / 60, left % 60);
    if (!live_) return line(text);
    fmt::print("\r\x1b[K{}{}", text, last ? "\n" : "");
    std::fflush(stdout);
  }
  /// A fact: as JSON, or in words.
  void result(const nlohmann::json& json, const std::string& words) { line(json_ ? json.dump() : words); }
  /// A remark for people, beside the output.
  void note(const std::string& words) { fmt::print(stderr, "weft: note: {}\n", words); }

 private:
  // Flushed, so that a pipe shows it when it happens.
  static void line(const std::string& text) {
    fmt::print("{}\n", text);
    std::fflush(stdout);
  }

  bool json_, live_, shown_ = false;
  std::chrono::steady_clock::time_point when_;
};

}  // namespace weft::cli
