#include "cli/checking/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "weft/status.h"

namespace weft::cli {
namespace {

/// Both ends of a pipe, closed with it.
struct Pipe {
  Pipe() {
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw Error(fail(Code::io, "can't make a pipe to a child process: {}", std::strerror(errno)));
  }
  ~Pipe() {
    ::close(ends[0]);
    close_write_end();
  }
  Pipe(const Pipe&) = delete;
  void close_write_end() {
    if (ends[1] >= 0) ::close(ends[1]);
    ends[1] = -1;
  }
  int ends[2] = {-1, -1};
};

pid_t start(const std::vector<std::string>& arguments, int out) {
  std::string self = "weft";
  std::vector<std::string> words(arguments);
  std::vector<char*> argv = {self.data()};
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int failed = ::posix_spawn(&child, "/proc/self/exe", &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (failed) throw Error(fail(Code::unavailable, "can't start a child process: {}", std::strerror(failed)));
  return child;
}

}  // namespace

Finished run_this_program(const std::vector<std::string>& arguments, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(std::max(seconds, 0.0)));
  Pipe pipe;
  const pid_t child = start(arguments, pipe.ends[1]);
  pipe.close_write_end();
  Finished done;
  for (char part[4096];;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd ready{.fd = pipe.ends[0], .events = POLLIN, .revents = 0};
    const int n = left > 0 ? ::poll(&ready, 1, static_cast<int>(left)) : 0;
    if (n < 0 && errno == EINTR) continue;
    done.ended = n > 0;
    const ssize_t bytes = n > 0 ? ::read(pipe.ends[0], part, sizeof part) : 0;
    if (bytes <= 0) break;
    done.out.append(part, static_cast<size_t>(bytes));
  }
  if (!done.ended) ::kill(child, SIGKILL);
  while (::waitpid(child, &done.status, 0) < 0 && errno == EINTR) {
  }
  return done;
}

}  // namespace weft::cli
