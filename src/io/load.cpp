#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>
#include <sstream>

#include "formats/file.h"
#include "io/utf8.h"
#include "weft/text.h"

namespace weft::io {
namespace {

namespace fs = std::filesystem;

// Text never contains a zero byte; other control characters are rare.
bool is_binary(std::string_view bytes) {
  size_t controls = 0;
  for (const char c : bytes) {
    if (c == 0) return true;
    controls += static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\r' && c != '\t' && c != '\f';
  }
  return controls * 20 > bytes.size();
}

// A file's text is all of its bytes. A line end is added between files, so that their words don't join.
void append(Text& text, const std::string& name, std::string_view bytes) {
  std::string latin1;
  if (!is_utf8(bytes)) {
    for (const char c : bytes) append_utf8(latin1, static_cast<unsigned char>(c));
    bytes = latin1;
    text.notes.push_back(fmt::format("{} is not UTF-8; read as Latin-1", name));
  }
  if (!text.utf8.empty() && !text.utf8.ends_with('\n')) text.utf8 += '\n';
  text.utf8 += bytes;
  text.files.push_back(name);
}

// Regular files at or below a folder, sorted by path; hidden ones are skipped and counted.
std::vector<fs::path> files_in(const fs::path& folder, std::vector<std::string>& notes) {
  std::vector<fs::path> out;
  std::error_code ec, of_one;  // a dangling or circular link is no file
  for (auto it = fs::recursive_directory_iterator(folder, ec); !ec && it != fs::end(it); it.increment(ec)) {
    if (it->path().filename().string().starts_with('.')) {
      if (it->is_directory(of_one)) it.disable_recursion_pending();
      notes.push_back(fmt::format("{} is hidden; left out", it->path().string()));
    } else if (it->is_symlink(of_one) && it->is_directory(of_one)) {
      notes.push_back(fmt::format("{} is a link to a folder; left out", it->path().string()));
    } else if (it->is_regular_file(of_one)) {
      out.push_back(it->path());
    }
  }
  if (ec) throw Error(fail(Code::unavailable, "can't read the folder {}: {}", folder.string(), ec.message()));
  std::sort(out.begin(), out.end());
  return out;
}

// A file that is not text is an error if it was `named`, and skipped in a folder.
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
  const auto bytes = value_or_raise(formats::read_file(path.string()));
  add_text(text, path.string(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, named);
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
      for (const auto& file : files_in(p, text.notes)) add_file(text, seen, file, false);
    } else {
      add_file(text, seen, p, true);
    }
  }
  if (text.utf8.empty())
    throw Error(invalid("no text in {}", fmt::format("{}", paths.empty() ? "" : paths[0])));
  return text;
}

}  // namespace weft::io
