#pragma once
#include <CLI/CLI.hpp>
#include <span>

// The `weft` program. Each file src/cli/<name>.cpp that defines `const Command <name>_command` is a
// subcommand; the build makes the table.
namespace weft::cli {

/// Options that every subcommand has.
struct Common {
  std::string backend;               // --backend
  std::string policy = "forbid";     // --policy
  int threads = 0;                   // --threads
  bool json = false;                 // --json
  std::vector<std::string> plugins;  // --plugin
};

struct Command {
  const char* name;
  const char* help;
  /// Adds options to `app` and returns what to run once they are parsed: its value is the exit status.
  std::function<int()> (*setup)(CLI::App& app, const Common& common);
};
std::span<const Command> all_commands();

}  // namespace weft::cli
