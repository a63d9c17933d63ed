#pragma once
#include <string>
#include <thread>

namespace weft::cli {

/// While it lives, a process that ends early (a signal, Ctrl-C, a kernel that calls exit) prints the current
/// case and the command that repeats it to standard error. If a case takes more than `limit` seconds, the
/// process says so and exits with 1. One at a time; forked children are silent, and so are stack overflows of
/// other threads.
class LastWords {
 public:
  explicit LastWords(double limit);
  ~LastWords();
  LastWords(const LastWords&) = delete;

  /// Sets the running case.
  void at(const std::string& repeat);

 private:
  std::jthread watch_;
};

}  // namespace weft::cli
