#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/face/face.h"

namespace weft::cli {
namespace {

// Words that only the program itself knows.
constexpr const char *kBackends = "backends 2>/dev/null | awk '$2 == \"available\" { print $1 }'",
                     *kOps = "ops 2>/dev/null | awk '{ print $1 }'";

/// Text between single quotes of a shell.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) c == '\'' ? out += "'\\''" : out += c;
  return out + "'";
}

std::vector<std::string> names_of(const std::vector<Argument>& list) {
  std::vector<std::string> names;
  for (const auto& a : list) names.insert(names.end(), a.names.begin(), a.names.end());
  return names;
}
std::vector<std::string> names_of(const std::vector<CommandLine>& list) {
  std::vector<std::string> names;
  for (const auto& c : list) names.push_back(c.name);
  return names;
}

// The action of _weft() below for the value of an option or a positional argument.
std::string bash_source(const Argument& a) {
  const std::string many = a.many ? "+" : "";
  switch (source_of(a)) {
    case Source::nothing: return "?" + many;
    case Source::choices: return joined(a.choices, " ") + many;
    case Source::files: return "<file>" + many;
    case Source::folders: return "<folder>" + many;
    case Source::backends: return "<backend>" + many;
    case Source::ops: return "<op>" + many;
  }
  return "?";
}

constexpr const char* kBash =
    R"script(# Completion of the program {name} in bash, as `{name} completion bash` prints it.
_{name}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} command= option= values=0 takes= words= rest= i
  [[ $current == '=' ]] && current=  # --option=value comes as three words
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${{COMP_WORDS[i]}} in
      =) ;;
      -*) option=${{COMP_WORDS[i]}} values=0 ;;
      *) if [[ $command ]]; then ((++values)); else command=${{COMP_WORDS[i]}}; fi ;;
    esac
  done
  # What the last option takes: one word, or with a + any number of them.
  case "$command $option" in
{values}  esac
  if [[ $takes == *+ ]]; then
    [[ $current != -* ]] || takes=
  else
    ((values == 0)) || takes=
  fi
  # Else an option of the command, or what may stand alone.
  if [[ ! $takes ]]; then
    case $command in
{words}    esac
    [[ $option || $values == 0 || $rest == *+ ]] || rest=
    [[ $current == -* || ! $rest ]] || takes=$rest
  fi
  case ${{takes%+}} in
    '') ;;
    '?') words= ;;
    '<backend>') words=$("${{COMP_WORDS[0]}}" {backends}) ;;
    '<op>') words=$("${{COMP_WORDS[0]}}" {ops}) ;;
    *) words=${{takes%+}} ;;
  esac
  case $words in
    '<file>') mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    '<folder>') mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
  esac
  [[ $words != '<'* ]] || compopt -o filenames 2>/dev/null  # outside of a line that is typed, it can't
}}
complete -F _{name} {name}
)script";

constexpr const char* kZsh = R"script(#compdef {name}
# Completion of the program {name} in zsh, as `{name} completion zsh` prints it.
_{name}_backends() {{ compadd -- ${{(f)"$({name} {backends})"}} }}
_{name}_ops() {{ compadd -- ${{(f)"$({name} {ops})"}} }}
_{name}() {{
  local line state
  _arguments -C \
{root}    '1: :->command' '*:: :->rest'
  case $state in
    command)
      local -a commands=(
{commands}      )
      _describe subcommand commands ;;
    rest)
      case $line[1] in
{rest}      esac ;;
  esac
}}
_{name} "$@"
)script";

std::string zsh_action(const CommandLine& root, const Argument& a) {
  switch (source_of(a)) {
    case Source::nothing: return " ";  // shows the description
    case Source::choices: return "(" + joined(a.choices, " ") + ")";
    case Source::files: return "_files";
    case Source::folders: return "_files -/";
    case Source::backends: return "_" + root.name + "_backends";
    case Source::ops: return "_" + root.name + "_ops";
  }
  return " ";
}

// Escapes characters that end a part of a specification.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) out += std::string(c == ':' || c == '[' || c == ']' ? "\\" : "") + c;
  return out;
}

// One line of _arguments for each name of an option; each name excludes the others.
std::string zsh_option(const CommandLine& root, const Argument& o, const char* indent) {
  std::string out;
  for (const auto& name : o.names) {
    const bool takes = !o.value.empty();
    out += indent;
    out += in_quotes((o.many ? "*" : "(" + joined(o.names, " ") + ")") + name + (takes ? "=" : "") + "[" +
                     zsh_text(o.about) + "]" +
                     (takes ? ":" + zsh_text(o.value) + ":" + zsh_action(root, o) : "")) +
           " \\\n";
  }
  return out;
}

// One `complete` line of fish, with its arguments.
std::string fish_line(const CommandLine& root, const std::string& when, const Argument& a) {
  std::string out = "complete -c " + root.name + " -n " + in_quotes(when);
  for (const auto& name : a.names)
    if (name.starts_with('-'))
      out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  const auto from = [](const std::string& words) { return " -x -a " + in_quotes(words); };
  const bool takes = !a.value.empty();
  switch (source_of(a)) {
    case Source::nothing: out += takes ? " -x" : ""; break;
    case Source::choices: out += from(joined(a.choices, " ")); break;
    case Source::files: out += " -r -F"; break;
    case Source::folders: out += from("(__fish_complete_directories)"); break;
    case Source::backends: out += from(fmt::format("({} {})", root.name, kBackends)); break;
    case Source::ops: out += from(fmt::format("({} {})", root.name, kOps)); break;
  }
  return out + " -d " + in_quotes(a.about) + "\n";
}

}  // namespace

std::string bash_completion(const CommandLine& root) {
  // Values by option and command.
  std::map<std::string, std::map<std::string, std::vector<std::string>>> takers;
  const std::string own = joined(names_of(root.commands), " ") + " " + joined(names_of(root.options), " ");
  std::string words = fmt::format("      '') words={} ;;\n", in_quotes(own));
  for (const auto& c : root.commands) {
    for (const auto& o : c.options)
      if (!o.value.empty())
        for (const auto& name : o.names) takers[bash_source(o)][name].push_back(c.name);
    const std::string rest = c.positionals.empty() ? "" : " rest=" + in_quotes(bash_source(c.positionals[0]));
    words +=
        fmt::format("      {}) words={}{} ;;\n", c.name, in_quotes(joined(names_of(c.options), " ")), rest);
  }
  std::string values;
  for (const auto& [source, options] : takers) {
    std::vector<std::string> patterns;
    for (const auto& [name, commands] : options)
      if (commands.size() == root.commands.size())
        patterns.push_back("*" + in_quotes(" " + name));
      else
        for (const auto& c : commands) patterns.push_back(in_quotes(c + " " + name));
    values += fmt::format("    {}) takes={} ;;\n", joined(patterns, " | "), in_quotes(source));
  }
  return fmt::format(fmt::runtime(kBash), fmt::arg("name", root.name), fmt::arg("values", values),
                     fmt::arg("words", words), fmt::arg("backends", kBackends), fmt::arg("ops", kOps));
}

std::string zsh_completion(const CommandLine& root) {
  std::string options, commands, rest;
  for (const auto& o : root.options) options += zsh_option(root, o, "    ");
  for (const auto& c : root.commands) {
    commands += "        " + in_quotes(c.name + ":" + zsh_text(c.about)) + "\n";
    rest += "        " + c.name + ")\n          _arguments \\\n";
    for (const auto& o : c.options) rest += zsh_option(root, o, "            ");
    for (const auto& p : c.positionals)
      rest += "            " +
              in_quotes((p.many ? "*:" : ":") + zsh_text(p.names[0]) + ":" + zsh_action(root, p)) + " \\\n";
    rest += "            && return ;;\n";
  }
  return fmt::format(fmt::runtime(kZsh), fmt::arg("name", root.name), fmt::arg("root", options),
                     fmt::arg("commands", commands), fmt::arg("rest", rest), fmt::arg("backends", kBackends),
                     fmt::arg("ops", kOps));
}

std::string fish_completion(const CommandLine& root) {
  std::string out = fmt::format(
      "# Completion of the program {0} in fish, as `{0} completion fish` prints it.\ncomplete -c {0} -f\n",
      root.name);
  constexpr const char* kNone = "__fish_use_subcommand";
  for (const auto& o : root.options) out += fish_line(root, kNone, o);
  for (const auto& c : root.commands)
    out += fmt::format("complete -c {} -n {} -a {} -d {}\n", root.name, kNone, c.name, in_quotes(c.about));
  for (const auto& c : root.commands) {
    const std::string when = "__fish_seen_subcommand_from " + c.name;
    for (const auto& o : c.options) out += fish_line(root, when, o);
    for (const auto& p : c.positionals) out += fish_line(root, when, p);
  }
  return out;
}

}  // namespace weft::cli
