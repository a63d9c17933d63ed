#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

// The command line as data, read from its CLI11 definitions: the source of help, manual pages and completion.
namespace weft::cli {

/// An option, or a positional argument.
struct Argument {
  std::vector<std::string> names;  ///< "-h", "--help"; of a positional argument its own: "program"
  std::string value;  ///< what it takes, in a word: "N", "DIR", "forbid|warn|allow"; empty: nothing
  std::vector<std::string> choices;  ///< all that it takes, where they are few
  std::string about;                 ///< "rows a step"
  std::string limits;                ///< "1 to 65536; default 256"
  std::string group;
  bool many = false, required = false;
  bool repeated = false;  // with many values: the option's name precedes each

  /// "-h, --help", "--data PATH..."
  std::string usage() const;
  /// Its purpose and limits, in one line.
  std::string description() const;
};

struct CommandLine {
  std::string name, about, footer;
  std::vector<Argument> options, positionals;
  std::vector<CommandLine> commands;

  /// The usage, "weft run [OPTIONS] program"; `path` is the command's words.
  std::string synopsis(const std::string& path) const;
};
CommandLine command_line(const CLI::App& app);

/// For a terminal of 80 columns.
std::string help(const CommandLine& c, const std::string& path);
struct Release {
  std::string_view version, date;
};
/// A page for man(1), in the macros of man(7).
std::string manual(const CommandLine& root, const CommandLine& c, const Release& release);
/// A script that makes this shell complete the program's words.
std::string bash_completion(const CommandLine& root);
std::string zsh_completion(const CommandLine& root);
std::string fish_completion(const CommandLine& root);

/// The source of a value's completions.
enum class Source : uint8_t { nothing, choices, files, folders, backends, ops };
Source source_of(const Argument& a);

/// `text` in lines of at most `width` characters, broken at spaces.
std::vector<std::string> wrapped(std::string_view text, size_t width);
/// The words in one line, separated by `between`.
std::string joined(const std::vector<std::string>& words, std::string_view between);

}  // namespace weft::cli
