#pragma once
#include <string_view>

#include "weft/status.h"

namespace weft {

enum class LogLevel { debug, info, warning, error };

/// One line to standard error, if `level` is at least the threshold (WEFT_LOG=debug|info|warning|error;
/// warning).
void log(LogLevel level, std::string_view text);
template <class... A>
void warn(fmt::format_string<A...> text, A&&... args) {
  log(LogLevel::warning, fmt::format(text, std::forward<A>(args)...));
}
/// Sends log lines elsewhere; null brings standard error back.
void set_log_sink(void (*sink)(LogLevel, std::string_view));

}  // namespace weft
