#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "peers.h"

extern char** environ;

namespace weft::speed {
namespace {

// The input of the process: shapes and numbers as a line of JSON, then the elements.
std::string write_operands(const std::vector<Operand>& operands, const std::vector<double>& numbers) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("weft_speed.{}", getpid());
  nlohmann::json head = {{"numbers", numbers}, {"operands", nlohmann::json::array()}};
  for (const auto& o : operands) head["operands"].push_back({o.shape, o.c().is_index});
  std::ofstream file(path, std::ios::binary);
  file << head.dump() << "\n";
  for (const auto& o : operands) {
    const PeerTensor t = o.c();
    const size_t bytes = t.is_index ? o.indices.size() * 8 : o.values.size() * 4;
    file.write(static_cast<const char*>(t.data), static_cast<std::streamsize>(bytes));
  }
  return path;
}

/// A child process that answers each line with a line.
class Process {
 public:
  explicit Process(std::vector<std::string> arguments) {
    int down[2], up[2];
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, down[0], 0);
    posix_spawn_file_actions_adddup2(&actions, up[1], 1);
    std::vector<char*> argv;
    for (auto& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    if (posix_spawnp(&child_, argv[0], &actions, nullptr, argv.data(), environ) != 0) child_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(down[0]), close(up[1]);
    to_ = fdopen(down[1], "w"), from_ = fdopen(up[0], "r");
  }
  ~Process() {
    if (to_) std::fclose(to_);  // it exits at the end of its input
    if (from_) std::fclose(from_);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }
  Process(const Process&) = delete;

  /// Empty when the process has ended.
  std::string line() {
    std::string text;
    for (int c; from_ && (c = std::getc(from_)) != EOF && c != '\n';) text += static_cast<char>(c);
    return text;
  }
  std::string ask(const char* what) {
    std::fprintf(to_, "%s\n", what);
    std::fflush(to_);
    return line();
  }

 private:
  pid_t child_ = -1;
  FILE *to_ = nullptr, *from_ = nullptr;
};

std::vector<float> numbers_in(const std::string& text) {
  std::vector<float> all;
  const char* at = text.c_str();
  for (char* end; *at; at = end) {
    all.push_back(std::strtof(at, &end));
    if (end == at) break;
  }
  return all;
}

}  // namespace

std::vector<PeerTask> compiled_peer(const std::vector<Operand>& operands, const std::vector<double>& numbers,
                                    int threads) {
  const char* python = std::getenv("WEFT_PEER_PYTHON");
  const std::string path = write_operands(operands, numbers);
  const auto process = std::make_shared<Process>(
      std::vector<std::string>{python ? python : "python3", WEFT_SOURCE_DIR "/bench/speed/compiled.py", path,
                               std::to_string(threads)});
  const bool ready = process->line() == "ready";
  std::filesystem::remove(path);
  if (!ready) {
    fmt::print("torch.compile is not here: the Python that runs bench/speed/compiled.py says why\n");
    return {};
  }
  return {{"compile",
           {[process] {
              if (process->ask("step") != "done")
                throw std::runtime_error("torch.compile's process has ended");
            },
            [process] { return numbers_in(process->ask("losses")); }},
           {}}};
}

}  // namespace weft::speed
