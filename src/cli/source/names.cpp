#include "cli/source/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::cli::source {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }
bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::vector<std::string> parts_of(std::string_view dotted) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= dotted.size();) {
    const size_t dot = std::min(dotted.find('.', at), dotted.size());
    parts.emplace_back(dotted.substr(at, dot - at));
    at = dot + 1;
  }
  return parts;
}
bool is_number(const std::string& part) { return std::ranges::all_of(part, digit); }

/// Without a number behind it: "linear_3" is "linear".
std::string uncounted(const std::string& part) {
  size_t n = part.size();
  while (n > 0 && digit(part[n - 1])) --n;
  return n > 1 && n < part.size() && part[n - 1] == '_' ? part.substr(0, n - 1) : part;
}

}  // namespace

std::string word(std::string_view text) {
  std::string out;
  for (const char c : text) out += letter(c) || digit(c) ? c : '_';
  while (!out.empty() && out.back() == '_') out.pop_back();
  if (!out.empty() && digit(out[0])) out.insert(out.begin(), 'v');
  return out;
}

std::string Names::take(const std::vector<std::string>& wishes) {
  std::string last = "value";
  for (const auto& wish : wishes) {
    const std::string name = word(wish);
    if (name.empty() || name[0] == '_') continue;
    if (taken_.insert(name).second) return name;
    last = name;
  }
  for (int n = 1;; ++n)
    if (auto name = fmt::format("{}_{}", last, n); taken_.insert(name).second) return name;
}

std::vector<std::string> wishes_of(std::string_view node, std::string_view op, bool in_loop) {
  auto parts = parts_of(node);
  if (parts.size() > 1 && parts.back() == op) parts.pop_back();
  if (const auto number = std::ranges::find_if(parts, is_number); in_loop && number != parts.end())
    parts.erase(parts.begin(), number);
  std::erase_if(parts, is_number);
  if (in_loop)
    for (auto& part : parts) part = uncounted(part);
  std::vector<std::string> out;
  if (!parts.empty()) out.push_back(parts.back());
  if (parts.size() > 1) out.push_back(parts[parts.size() - 2] + "_" + parts.back());
  return out;
}

std::string layer_of(std::string_view weight) {
  auto parts = parts_of(weight);
  if (parts.size() > 1) parts.pop_back();
  std::erase_if(parts, is_number);
  return parts.empty() ? "" : parts.back();
}

std::string numbered_scope(std::string_view node) {
  std::string scope;
  for (const auto& part : parts_of(node)) {
    scope += (scope.empty() ? "" : ".") + part;
    if (is_number(part)) return scope;
  }
  return "";
}

}  // namespace weft::cli::source
