#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "io/utf8.h"
#include "weft/text.h"

namespace weft::io {
namespace {

namespace fs = std::filesystem;

std::string read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  if (in) all << in.rdbuf();
  if (!in || in.bad())
    throw Error(fail(Code::unavailable, "can't read {}: check that it exists and that you may read it",
                     path.string()));
  return std::move(all).str();
}

// A zero byte never stands in text of any encoding that is read here; other controls do, but seldom.
bool is_binary(std::string_view bytes) {
  size_t controls = 0;
  for (const char c : bytes) {
    if (c == 0) return true;
    controls += static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\r' && c != '\t' && c != '\f';
  }
  return controls * 20 > bytes.size();
}

// Line ends become one character, whatever wrote the file.
std::string unify_lines(std::string_view s) {
  std::string out;
  out.reserve(s.size() + 1);
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '\r') {
      out += s[i];
    } else if (i + 1 == s.size() || s[i + 1] != '\n') {
      out += '\n';
    }
  }
  return out;
}

void append(Text& text, const std::string& name, std::string_view bytes) {
  std::string latin1;
  if (!is_utf8(bytes)) {
    for (const char c : bytes) append_utf8(latin1, static_cast<unsigned char>(c));
    bytes = latin1;
    text.notes.push_back(fmt::format("{} is not UTF-8; read as Latin-1", name));
  }
  text.utf8 += unify_lines(bytes);
  text.utf8 += '\n';
  text.files.push_back(name);
}

// Regular files at or below a folder, hidden ones left out, in order of path.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code ec;
  for (auto it = fs::recursive_directory_iterator(folder, ec); !ec && it != fs::end(it); it.increment(ec)) {
    const auto name = it->path().filename().string();
    if (name.starts_with('.')) {
      if (it->is_directory()) it.disable_recursion_pending();
      continue;
    }
    std::error_code broken_link;
    if (it->is_regular_file(broken_link)) out.push_back(it->path());
  }
  if (ec) throw Error(fail(Code::unavailable, "can't read the folder {}: {}", folder.string(), ec.message()));
  std::sort(out.begin(), out.end());
  return out;
}

// Text that must be text where it was `named`, and is left out where a folder has it.
void add_text(Text& text, const std::string& name, std::string_view bytes, bool named) {
  const char* wrong = bytes.empty() ? "is empty" : is_binary(bytes) ? "is binary, not text" : nullptr;
  if (!wrong) return append(text, name, bytes);
  if (named) throw Error(invalid("{} {}; give a text file", name, wrong));
  text.notes.push_back(fmt::format("{} {}; left out", name, wrong));
}

void add_file(Text& text, std::set<fs::path>& seen, const fs::path& path, bool named) {
  std::error_code ec;
  const auto real = fs::canonical(path, ec);
  if (!ec && !seen.insert(real).second) return;
  // A device or a pipe may never end.
  if (!ec && !fs::is_regular_file(real, ec))
    throw Error(invalid("{} is no regular file; use - for standard input", path.string()));
  add_text(text, path.string(), read_all(path), named);
}

void add_standard_input(Text& text) {
  std::ostringstream all;
  all << std::cin.rdbuf();
  add_text(text, "standard input", std::move(all).str(), true);
}

}  // namespace

Text load_text(const std::vector<std::string>& paths) {
  Text text;
  std::set<fs::path> seen;
  for (const auto& p : paths) {
    if (p == "-") {
      add_standard_input(text);
      continue;
    }
    std::error_code ec;
    const auto status = fs::status(p, ec);
    if (!fs::exists(status)) throw Error(fail(Code::unavailable, "no file or folder {}", p));
    if (fs::is_directory(status)) {
      for (const auto& file : files_in(p)) add_file(text, seen, file, false);
    } else {
      add_file(text, seen, p, true);
    }
  }
  if (text.utf8.empty())
    throw Error(invalid("no text in {}", fmt::format("{}", paths.empty() ? "" : paths[0])));
  return text;
}

}  // namespace weft::io
