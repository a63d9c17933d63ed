#include "cli/face/face.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>

namespace weft::cli {
namespace {

// "INT:INT in [1 - 9]" is the type, then the description of its checks.
struct TypeName {
  explicit TypeName(std::string text) : kind(text.substr(0, text.find(':'))) {
    const auto part = [&](const char* from, const char* to) {
      const auto a = text.find(from), b = text.find(to, a == text.npos ? a : a + std::strlen(from));
      return b == text.npos ? std::string() : text.substr(a + std::strlen(from), b - a - std::strlen(from));
    };
    range = part(" in [", "]");
    if (const auto dash = range.find(" - "); dash != range.npos) range.replace(dash, 3, " to ");
    for (std::string rest = part("{", "}"); !rest.empty();) {
      const auto comma = std::min(rest.find(','), rest.size());
      choices.push_back(rest.substr(0, comma));
      rest.erase(0, comma + 1);
    }
  }
  std::string kind, range;
  std::vector<std::string> choices;
};

std::string value_of(const TypeName& type) {
  if (!type.choices.empty()) return joined(type.choices, "|");
  if (type.kind == "INT" || type.kind == "UINT") return "N";
  return type.kind == "FLOAT" ? "X" : type.kind;
}

Argument argument(const CLI::Option& o) {
  Argument a;
  for (const auto& n : o.get_snames()) a.names.push_back("-" + n);
  for (const auto& n : o.get_lnames()) a.names.push_back("--" + n);
  if (a.names.empty()) a.names.push_back(o.get_name(true));
  a.about = o.get_description(), a.group = o.get_group();
  a.required = o.get_required();
  std::vector<std::string> limits, others;
  if (o.get_type_size() != 0) {
    const TypeName type(o.get_type_name());
    a.value = value_of(type), a.choices = type.choices;
    a.many = o.get_expected_max() >= CLI::detail::expected_max_vector_size;
    a.repeated = a.many && !o.get_allow_extra_args();
    if (!type.range.empty()) limits.push_back(type.range);
    if (!o.get_default_str().empty()) limits.push_back("default " + o.get_default_str());
  }
  if (a.required && !o.get_positional()) limits.push_back("required");
  for (const CLI::Option* other : o.get_excludes()) others.push_back(other->get_name());
  std::ranges::sort(others);  // CLI11 orders them by address
  for (const auto& name : others) limits.push_back("not with " + name);
  a.limits = joined(limits, "; ");
  return a;
}

}  // namespace

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (const auto& w : words) out += (out.empty() ? "" : std::string(between)) + w;
  return out;
}

std::string Argument::usage() const {
  return joined(names, ", ") + (value.empty() ? "" : " " + value) + (many && !repeated ? "..." : "");
}
std::string Argument::description() const { return limits.empty() ? about : about + " (" + limits + ")"; }

std::string CommandLine::synopsis(const std::string& path) const {
  std::string s = path + " [OPTIONS]";
  for (const auto& p : positionals) {
    const std::string word = p.names[0] + (p.many ? "..." : "");
    s += p.required ? " " + word : " [" + word + "]";
  }
  return s + (commands.empty() ? "" : " SUBCOMMAND");
}

CommandLine command_line(const CLI::App& app) {
  CommandLine c{.name = app.get_name(), .about = app.get_description(), .footer = app.get_footer()};
  for (const CLI::Option* o : app.get_options())
    (o->get_positional() ? c.positionals : c.options).push_back(argument(*o));
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    c.commands.push_back(command_line(*sub));
  return c;
}

Source source_of(const Argument& a) {
  if (!a.choices.empty()) return Source::choices;
  if (a.value == "FILE" || a.value == "PATH") return Source::files;
  if (a.value == "DIR") return Source::folders;
  if (a.value == "BACKEND") return Source::backends;
  return a.value == "OP" ? Source::ops : Source::nothing;
}

}  // namespace weft::cli
