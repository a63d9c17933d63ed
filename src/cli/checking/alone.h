#pragma once
#include <chrono>
#include <span>
#include <string>
#include <vector>

namespace weft::cli {

/// The cause of a failure, found by running its case again in separate processes.
struct Alone {
  std::string words;                ///< "fails alone, too"; how its process ended; or what it depends on
  std::vector<std::string> before;  ///< cases that have to run before it, where it passes alone
};

/// Runs cases again, within a time limit.
class Again {
 public:
  /// `arguments` are those of the failed command, without options that select cases.
  Again(std::vector<std::string> arguments, double seconds);

  /// The cases that the last one depends on; all ran in this order.
  Alone ask(std::span<const std::string> ran);

 private:
  enum class End : unsigned char { passes, fails, breaks, no_time };
  struct Ran {
    End end;
    std::string words;  ///< how its process broke off
  };
  /// The last case, in a process that runs `before` first.
  Ran run(std::span<const std::string> before, const std::string& last);
  std::vector<std::string> smaller(std::vector<std::string> before, const std::string& last);
  double left() const;

  std::vector<std::string> arguments_;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace weft::cli
