#pragma once
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
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

/// Checks that an option is a whole number from `least` up. CLI11 alone takes one that does not fit for the
/// nearest that does.
template <class T>
auto whole_number(T least) {
  return [least](const std::string& text) -> std::string {
    T value{};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stop == end && value >= least) return "";
    return fmt::format("must be a whole number from {} to {}, got {}", least, std::numeric_limits<T>::max(),
                       text);
  };
}

}  // namespace weft::cli
