#pragma once
#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace weft {

/// How a command ended, and what it said.
struct Outcome {
  int status = 0;    // 1000 and more: a signal
  std::string text;  // standard output and error
};

inline Outcome run_command(const std::string& command) {
  Outcome out;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  char part[4096];
  while (const size_t n = std::fread(part, 1, sizeof part, pipe)) out.text.append(part, n);
  const int ended = ::pclose(pipe);
  out.status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 1000 + WTERMSIG(ended);
  return out;
}

/// The program as it was built here.
inline Outcome weft_program(const std::string& arguments) {
  return run_command(std::string(WEFT_BINARY_DIR "/weft ") + arguments);
}

}  // namespace weft
