#pragma once
#include <chrono>
#include <string>

// The terminal, where standard output is one.
namespace weft::cli {

struct Screen {
  int width = 80, height = 24;
};
/// Its size; the usual one where it is not known.
Screen screen();
/// Is standard output a terminal whose cursor can be moved?
bool is_live();
/// One line of a terminal: line ends and other controls shown as spaces, no longer than it is wide.
std::string one_line(const std::string& text, int width);

/// A line for who is waiting, written over itself below what is printed. Nothing where no terminal is.
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

/// "1:05 left", by what is done and the seconds that it took; empty where nothing can be said.
std::string time_left(size_t done, size_t of, double seconds);

}  // namespace weft::cli
