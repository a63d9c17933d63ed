#pragma once
#include <string>
#include <thread>

namespace weft::cli {

/// While it lives, a process that ends (a signal, Ctrl-C, a kernel that calls exit) says on standard error
/// which case it was at and the command that repeats it. A case that takes more than `limit` seconds hangs:
/// then the process says so and ends with 1. One at a time; children that are forked stay silent, and so does
/// a thread other than this one that has used up its stack.
class LastWords {
 public:
  explicit LastWords(double limit);
  ~LastWords();
  LastWords(const LastWords&) = delete;

  /// What runs now.
  void at(const std::string& repeat);

 private:
  std::jthread watch_;
};

}  // namespace weft::cli
