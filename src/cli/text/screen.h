#pragma once
#include <chrono>
#include <string>

// The terminal, if standard output is one.
namespace weft::cli {

struct Screen {
  int width = 80, height = 24;
};
/// Its size; a default if unknown.
Screen screen();
/// Is standard output a terminal whose cursor can be moved?
bool is_live();
/// One line of a terminal: control characters become spaces, cut at its width.
std::string one_line(const std::string& text, int width);

/// A status line below the output, rewritten in place. Does nothing without a terminal.
class LiveLine {
 public:
  explicit LiveLine(bool wanted) : live_(wanted && is_live()) {}
  ~LiveLine() { clear(); }
  LiveLine(const LiveLine&) = delete;

  /// Is it time to show something again?
  bool due() const;
  void show(const std::string& text);
  /// Before anything else is printed.
  void clear();

 private:
  bool live_, shown_ = false;
  std::chrono::steady_clock::time_point last_{};
};

/// "1:05 left".
std::string left(double seconds);
/// The same, from the finished part and its seconds; empty if unknown.
std::string time_left(size_t done, size_t of, double seconds);

}  // namespace weft::cli
