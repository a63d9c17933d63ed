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

std::string line_of(const Json& object) { return object.text(); }
std::string page_of(const Json& all) { return all.text(2); }

Json ledger_json(const std::vector<LedgerRow>& rows) {
  Json out = Json::list();
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
void Show::result(const Json& json, const std::string& words) {
  fmt::print("{}\n", json_ ? line_of(json) : words);
  std::fflush(stdout);
}

}  // namespace weft::cli
