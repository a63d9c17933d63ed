#include <fmt/format.h>

#include <algorithm>

#include "cli/face/face.h"

namespace weft::cli {
namespace {

// Text escaped for roff, so that nothing in it is a request.
std::string plain(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out = "\\&";
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '`')
      out += "\\(ga";
    else if (c == '\n')
      out += "\n.br\n";
    else
      out += c;
  }
  return out;
}
std::string bold(std::string_view text) { return "\\fB" + plain(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + plain(text) + "\\fR"; }

// A term and its meaning.
void entry(std::string& out, const std::string& term, const std::string& meaning) {
  out += ".TP\n" + term + "\n" + meaning + "\n";
}

std::string sentence(std::string text) {
  if (!text.empty() && text.back() != '.') text += '.';
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string page_name(const CommandLine& root, const CommandLine& c) {
  return &c == &root ? root.name : root.name + "-" + c.name;
}

void options(std::string& out, const CommandLine& c) {
  if (!c.positionals.empty()) out += ".SH ARGUMENTS\n";
  for (const auto& p : c.positionals) entry(out, italic(p.names[0]), plain(sentence(p.description())));
  out += ".SH OPTIONS\n";
  for (const auto& o : c.options) {
    std::string term;
    for (const auto& n : o.names) term += (term.empty() ? "" : ", ") + bold(n);
    if (!o.value.empty()) term += " " + italic(o.value) + (o.many && !o.repeated ? "..." : "");
    entry(out, term, plain(sentence(o.description())));
  }
}

// The footer's text about the exit status gets its own section, where readers look for it.
void footers(std::string& out, const CommandLine& root, const CommandLine& c) {
  constexpr std::string_view kStatus = "Exit status: ";
  const auto append = [&](const std::string& footer) {
    const bool status = footer.starts_with(kStatus);
    out += status ? ".SH EXIT STATUS\n" : ".SH NOTES\n";
    out += plain(sentence(status ? footer.substr(kStatus.size()) : footer)) + "\n";
  };
  append(root.footer);
  if (!c.footer.empty() && c.footer != root.footer) append(c.footer);
}

}  // namespace

std::string manual(const CommandLine& root, const CommandLine& c, const Release& release) {
  const std::string name = page_name(root, c);
  std::string upper = name, out;
  std::ranges::transform(upper, upper.begin(), [](unsigned char x) { return std::toupper(x); });
  out = fmt::format(".TH {} 1 \"{}\" \"{} {}\" \"Manual of {}\"\n", upper, release.date, root.name,
                    release.version, root.name);
  out += fmt::format(".SH NAME\n{} \\- {}\n", plain(name), plain(c.about));
  out += ".SH SYNOPSIS\n" + bold(&c == &root ? root.name : root.name + " " + c.name) + " [" +
         italic("OPTIONS") + "]";
  for (const auto& p : c.positionals) {
    const std::string word = italic(p.names[0]) + (p.many ? "..." : "");
    out += p.required ? " " + word : " [" + word + "]";
  }
  out += c.commands.empty() ? "\n" : " " + italic("SUBCOMMAND") + "\n";
  out += ".SH DESCRIPTION\n" + plain(sentence(c.about)) + "\n";
  if (!c.commands.empty()) out += ".SH SUBCOMMANDS\n";
  for (const auto& sub : c.commands)
    entry(out, bold(page_name(root, sub)) + "(1)", plain(sentence(sub.about)));
  options(out, c);
  footers(out, root, c);
  std::vector<std::string> others;
  for (const auto& sub : root.commands)
    if (&sub != &c) others.push_back(bold(page_name(root, sub)) + "(1)");
  if (&c != &root) others.insert(others.begin(), bold(root.name) + "(1)");
  return out + ".SH SEE ALSO\n" + joined(others, ",\n") + "\n";
}

}  // namespace weft::cli
