#include <fmt/format.h>

#include <algorithm>

#include "cli/face/face.h"

namespace weft::cli {
namespace {

constexpr size_t kWidth = 80, kWidest = 24;  // of a line; of the left column

struct Row {
  std::string left, right;
};

// Two columns; the right one goes on the next line if the left one is too wide.
void append(std::string& out, const std::string& title, const std::vector<Row>& rows) {
  if (rows.empty()) return;
  size_t widest = 0;
  for (const Row& r : rows)
    if (r.left.size() <= kWidest) widest = std::max(widest, r.left.size());
  const size_t column = 2 + widest + 2;
  out += fmt::format("\n{}:\n", title);
  for (const Row& r : rows) {
    std::string line = "  " + r.left;
    if (r.left.size() > widest) out += line + "\n", line.clear();
    for (const auto& part : wrapped(r.right, kWidth - column)) {
      out += fmt::format("{:<{}}{}\n", line, column, part);
      line.clear();
    }
  }
}

// The whole program's help fits one screen: a line for each subcommand, and the few options in the usage.
std::string overview(const CommandLine& c, const std::string& path) {
  std::string options;
  for (const auto& o : c.options) options += fmt::format(" [{}]", o.names.back());
  std::string out = fmt::format("{}\nUsage: {}{} SUBCOMMAND\n", c.about, path, options);
  std::vector<Row> commands;
  for (const auto& sub : c.commands) commands.push_back({sub.name, sub.about});
  append(out, "Subcommands", commands);
  return out + fmt::format("\n`{} SUBCOMMAND --help` describes a subcommand.\n{}\n", path,
                           joined(wrapped(c.footer, kWidth), "\n"));
}

}  // namespace

std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (text.size() > width) {
    const auto space = text.substr(0, width + 1).rfind(' ');
    if (space == text.npos) break;
    lines.emplace_back(text.substr(0, space));
    text.remove_prefix(space + 1);
  }
  lines.emplace_back(text);
  return lines;
}

std::string help(const CommandLine& c, const std::string& path) {
  if (!c.commands.empty()) return overview(c, path);
  std::string out = joined(wrapped(c.about, kWidth), "\n") + "\nUsage: " + c.synopsis(path) + "\n";
  std::vector<Row> positionals;
  for (const auto& p : c.positionals) positionals.push_back({p.names[0], p.description()});
  append(out, "Arguments", positionals);
  std::vector<std::string> groups;
  for (const auto& o : c.options)
    if (std::ranges::find(groups, o.group) == groups.end()) groups.push_back(o.group);
  for (const auto& group : groups) {
    std::vector<Row> rows;
    for (const auto& o : c.options)
      if (o.group == group) rows.push_back({o.usage(), o.description()});
    append(out, group, rows);
  }
  if (!c.footer.empty()) out += "\n" + joined(wrapped(c.footer, kWidth), "\n") + "\n";
  return out;
}

}  // namespace weft::cli
