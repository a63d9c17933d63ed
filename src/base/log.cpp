#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace weft {
namespace {

std::atomic<void (*)(LogLevel, std::string_view)> sink{nullptr};

LogLevel threshold() {
  static const LogLevel level = [] {
    const char* text = std::getenv("WEFT_LOG");
    const std::string_view want = text ? text : "warning";
    if (want == "debug") return LogLevel::debug;
    if (want == "info") return LogLevel::info;
    return want == "error" ? LogLevel::error : LogLevel::warning;
  }();
  return level;
}

}  // namespace

void set_log_sink(void (*to)(LogLevel, std::string_view)) { sink = to; }

void log(LogLevel level, std::string_view text) {
  if (auto* to = sink.load()) return to(level, text);
  if (level < threshold()) return;
  static constexpr const char* names[] = {"debug", "info", "warning", "error"};
  const auto line = fmt::format("weft {}: {}\n", names[static_cast<int>(level)], text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace weft
