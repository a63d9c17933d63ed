#include "peak_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace weft::testing {

int64_t peak_memory(const std::vector<std::string>& arguments, const std::string& log) {
  const std::string program = WEFT_BINARY_DIR "/weft";
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const auto& a : arguments) words.push_back(const_cast<char*>(a.c_str()));
  words.push_back(nullptr);
  const pid_t child = ::fork();
  EXPECT_GE(child, 0);
  if (child < 0) return 0;
  if (child == 0) {
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(out, 1), ::dup2(out, 2);
    ::execv(program.c_str(), words.data());
    ::_exit(127);
  }
  // Asked for while it runs: what wait4() says counts this process too, from before the exec.
  int status = 0;
  int64_t most = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    std::ifstream lines("/proc/" + std::to_string(child) + "/status");
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("Name:") && line.find("weft_tests") != line.npos)
        break;  // not started yet
      else if (line.starts_with("VmHWM:"))
        most = std::max<int64_t>(most, int64_t{1024} * std::stoll(line.substr(6)));
    ::usleep(1000);
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << std::ifstream(log).rdbuf();
  EXPECT_GT(most, 0) << "no sample was taken";
  return most;
}

}  // namespace weft::testing
