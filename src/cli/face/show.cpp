#include "cli/show.h"

#include <cstdio>

namespace weft::cli {

void note(const std::string& words) { fmt::print(stderr, "weft: note: {}\n", words); }

std::string grouped(int64_t n) {
  const std::string digits = fmt::format("{}", n);
  std::string s;
  for (size_t i = 0; i < digits.size(); ++i) {
    const size_t left = digits.size() - i;
    if (!s.empty() && s.back() != '-' && left % 3 == 0) s += ',';
    s += digits[i];
  }
  return s;
}
std::string counted(size_t n, const std::string& what) {
  return fmt::format("{} {}{}", grouped(static_cast<int64_t>(n)), what, n == 1 ? "" : "s");
}

std::string line_of(const nlohmann::json& object) { return formats::json_text(object); }
std::string page_of(const nlohmann::json& all) { return formats::json_text(all, 2); }

nlohmann::json ledger_json(const std::vector<LedgerRow>& rows) {
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

// Flushed, so that a pipe shows it when it happens.
void Show::result(const nlohmann::json& json, const std::string& words) {
  fmt::print("{}\n", json_ ? line_of(json) : words);
  std::fflush(stdout);
}

}  // namespace weft::cli
