#include "cli/text/screen.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "weft/text.h"

namespace weft::cli {

Screen screen() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

bool is_live() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) && kind && std::string_view(kind) != "dumb";
}

std::string one_line(const std::string& text, int width) {
  std::u32string out;
  for (const char32_t c : io::from_utf8(text)) {
    if (out.size() + 1 == static_cast<size_t>(width)) break;
    out += c < 32 || c == 127 ? U' ' : c;
  }
  return io::to_utf8(out);
}

bool LiveLine::due() const {
  return live_ && std::chrono::steady_clock::now() - last_ > std::chrono::milliseconds(100);
}

void LiveLine::show(const std::string& text) {
  if (!live_) return;
  last_ = std::chrono::steady_clock::now(), shown_ = true;
  fmt::print("\r\x1b[K{}", one_line(text, screen().width));
  std::fflush(stdout);
}

void LiveLine::clear() {
  if (shown_) fmt::print("\r\x1b[K");
  shown_ = false;
  std::fflush(stdout);
}

std::string left(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  return fmt::format("{}:{:02} left", whole / 60, whole % 60);
}

std::string time_left(size_t done, size_t of, double seconds) {
  if (done == 0 || of < done || seconds < 0.5) return "";
  return left(seconds / static_cast<double>(done) * static_cast<double>(of - done));
}

}  // namespace weft::cli
