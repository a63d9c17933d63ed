#include "lab/kernels/python.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

namespace weft::lab {
namespace {

namespace fs = std::filesystem;

constexpr double kSeconds = 30;  // that Python may take to say what it has

std::string program() {
  const char* named = std::getenv("WEFT_PYTHON");
  const std::string name = named && *named ? named : this_python().program;
  // Kernels' processes run in folders of their own.
  return name.find('/') == std::string::npos ? name : fs::absolute(name).string();
}

// PYTHONPATH, from any folder, with where weft is: as this Python has it, or as the build made it beside this
// program.
std::string import_path() {
  std::string path = this_python().path;
  const auto add = [&](const fs::path& folder) {
    path += (path.empty() ? "" : ":") + fs::absolute(folder).string();
  };
  const char* given = std::getenv("PYTHONPATH");
  std::istringstream folders(given ? given : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty()) add(folder);
  std::error_code none;
  const auto beside = fs::read_symlink("/proc/self/exe", none).parent_path() / "python";
  if (fs::is_directory(beside / "weft", none)) add(beside);
  return path;
}

struct Said {
  std::string text;  // of both of its outputs
  int status = 0;
  bool late = false;
};

// Runs a command for its output.
Result<Said> said_by(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return fail(Code::io, "no pipe can be had: {}", std::strerror(errno));
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  for (const int out : {1, 2}) ::posix_spawn_file_actions_adddup2(&files, pipe[1], out);
  pid_t child = -1;
  const int error = ::posix_spawn(&child, argv[0], &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::close(pipe[1]);
  Said said;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kSeconds);
  for (char part[4096]; !error;) {
    const auto left = std::chrono::duration<double>(end - std::chrono::steady_clock::now()).count();
    pollfd ready{.fd = pipe[0], .events = POLLIN, .revents = 0};
    const int n = left > 0 ? ::poll(&ready, 1, static_cast<int>(1e3 * left) + 1) : 0;
    if (n < 0 && errno == EINTR) continue;
    said.late = n <= 0;
    const ssize_t bytes = n > 0 ? ::read(pipe[0], part, sizeof part) : 0;
    if (bytes <= 0) break;
    said.text.append(part, static_cast<size_t>(bytes));
  }
  ::close(pipe[0]);
  if (error) return fail(Code::io, "{} can't be started: {}", argv[0], std::strerror(error));
  if (said.late) ::kill(child, SIGKILL);
  while (::waitpid(child, &said.status, 0) < 0 && errno == EINTR) {
  }
  return said;
}

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of(" \n");
  if (end == std::string::npos) return "";
  const auto begin = text.rfind('\n', end);
  return text.substr(begin + 1, end - begin);
}

}  // namespace

Python& this_python() {
  static Python python;
  return python;
}

std::vector<std::string> python_command() {
  // By way of env, which looks for the program in PATH, too.
  return {"/usr/bin/env", "PYTHONPATH=" + import_path(), program(), "-m", "weft.lab.worker"};
}

Result<std::vector<std::string>> reasons_of(const std::vector<std::string>& names) {
  auto words = python_command();
  words.push_back("--check");
  words.insert(words.end(), names.begin(), names.end());
  WEFT_TRY(const auto said, said_by(words));
  const auto line = last_line(said.text);
  const auto answer = nlohmann::json::parse(line, nullptr, false);
  if (WIFEXITED(said.status) && WEXITSTATUS(said.status) == 0 && answer.is_array() &&
      answer.size() == names.size())
    return answer.get<std::vector<std::string>>();
  constexpr const char* kDo =
      "install Weft into it (pip install, in Weft's folder), put the folder that has weft into PYTHONPATH, "
      "or "
      "name another Python in WEFT_PYTHON";
  if (said.late)
    return fail(Code::unavailable, "{} did not say within {} seconds what it has; {}", program(), kSeconds,
                kDo);
  if (WIFEXITED(said.status) && WEXITSTATUS(said.status) == 127)
    return fail(Code::unavailable, "there is no Python {}; name one that has Weft in WEFT_PYTHON", program());
  return fail(Code::unavailable, "{} can't run Weft's kernels in Python; it says: {}; {}", program(), line,
              kDo);
}

}  // namespace weft::lab
