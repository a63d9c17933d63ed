#pragma once
#include <string>
#include <vector>

namespace weft::cli {

/// The outcome of a process.
struct Finished {
  int status = 0;     ///< of waitpid
  bool ended = true;  ///< false: it was killed when its time had passed
  std::string out;    ///< what it wrote to standard output
};

/// Runs this program with these arguments, for at most this many seconds. Its standard error is discarded.
/// Raises if no process can be started.
Finished run_this_program(const std::vector<std::string>& arguments, double seconds);

}  // namespace weft::cli
