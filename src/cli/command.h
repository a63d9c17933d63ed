#pragma once
#include <fmt/core.h>

#include <charconv>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

// The `weft` program. Each file src/cli/<name>.cpp that defines `const Command <name>_command` is a
// subcommand; the build makes the table.
namespace weft::cli {

/// Options that every subcommand has.
struct Common {
  std::string backend;                // --backend
  std::string policy = "forbid";      // --policy
  std::string deterministic = "any";  // --deterministic
  std::string precision = "strict";   // --precision
  int threads = 0;                    // --threads
  bool json = false;                  // --json
  std::vector<std::string> plugins;   // --plugin
};

/// An option being defined; wraps CLI11, which every subcommand would otherwise compile again.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& required();
  Option& type_name(const std::string& word);
  /// Shows its current value as the default.
  Option& capture_default_str();
  Option& range(int64_t least, int64_t most);
  Option& range(int least, int most) { return range(int64_t{least}, int64_t{most}); }
  Option& range(double least, double most);
  Option& one_of(std::vector<std::string> words);
  /// `wrong` returns what is wrong with a value, or nothing.
  Option& check(std::function<std::string(const std::string&)> wrong);
  Option& excludes(const Option& other);
  Option& excludes(const std::string& other);
  /// For an option with many values: one per occurrence.
  Option& one_at_a_time();
  /// For an option with many values: commas separate them, too.
  Option& with_commas();

 private:
  CLI::Option* option_;
};

/// The options of a subcommand. `to` keeps its value if an option is not given, and must outlive this.
class Syntax {
 public:
  explicit Syntax(CLI::App& app) : app_(app) {}
  Option add_option(const std::string& name, std::string& to, const std::string& help);
  Option add_option(const std::string& name, std::vector<std::string>& to, const std::string& help);
  Option add_option(const std::string& name, int& to, const std::string& help);
  Option add_option(const std::string& name, int64_t& to, const std::string& help);
  Option add_option(const std::string& name, uint64_t& to, const std::string& help);
  Option add_option(const std::string& name, double& to, const std::string& help);
  Option add_flag(const std::string& name, bool& to, const std::string& help);
  /// An option with named values.
  template <class E>
  Option add_choice(const std::string& name, E& to, std::vector<std::pair<std::string, E>> words,
                    const std::string& help) {
    std::vector<std::string> texts;
    for (const auto& [text, value] : words) texts.push_back(text);
    return add_function(name, help,
                        [&to, words](const std::string& given) {
                          for (const auto& [text, value] : words)
                            if (text == given) to = value;
                        })
        .one_of(std::move(texts));
  }
  /// One of these options must be given.
  void require_one(std::vector<std::string> names);
  void footer(const std::string& text);

  bool given(const std::string& name) const;
  /// The whole program's options, for generated output about all of them.
  const CLI::App& program() const;

 private:
  Option add_function(const std::string& name, const std::string& help,
                      std::function<void(const std::string&)> take);
  CLI::App& app_;
};

/// A well-formed but invalid command line: the program exits with 2 instead of 1.
struct UsageError : Error {
  using Error::Error;
};

struct Command {
  const char* name;
  const char* help;
  /// Adds options and returns what to run once they are parsed: its value is the exit status.
  std::function<int()> (*setup)(Syntax& app, const Common& common);
  /// Its output is about the options of all subcommands.
  bool sees_all = false;
};
std::span<const Command> all_commands();

/// Checks that an option is an integer of at least `least`. CLI11 alone clamps numbers that do not fit.
template <class T>
auto whole_number(T least, T most = std::numeric_limits<T>::max()) {
  return [least, most](const std::string& text) -> std::string {
    T value{};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stop == end && value >= least && value <= most) return "";
    return fmt::format("must be a whole number from {} to {}, got {}", least, most, text);
  };
}

/// Checks of options that are numbers; CLI11's own let "nan" through.
std::string positive(const std::string& text);
std::string from_zero(const std::string& text);
std::string share(const std::string& text);  ///< from 0 to 1
/// A text that is not empty.
std::string some_name(const std::string& text);

}  // namespace weft::cli
