#pragma once
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "formats/file.h"

namespace weft::cli {

/// Raises if `out` is, by any name or link, the file that `option` reads.
inline void refuse_to_overwrite(const std::string& out, const char* option, const std::string& read) {
  std::error_code one_is_not_there;
  if (std::filesystem::equivalent(out, read, one_is_not_there))
    throw Error(invalid("--out {} would overwrite {} {}, which is read here; choose another name", out,
                        option, read));
}

/// The file that --out names: "-" is standard output, as it is standard input for --data.
inline std::string output_path(const std::string& out) { return out == "-" ? "/dev/stdout" : out; }

/// Raises if write_text would fail, before there is anything to write. Not tried for missing folders, nor for
/// pipes and devices, whose reader would see the trial as the end.
inline void check_writable(const std::filesystem::path& path) {
  using enum std::filesystem::file_type;
  std::error_code ec;
  const auto type = std::filesystem::status(path, ec).type();
  if (type == fifo || type == character || type == socket) return;
  if (!path.has_parent_path() || std::filesystem::exists(path.parent_path(), ec))
    (void)value_or_raise(OutputFile::open(path.string()));
}

/// The lines of a file that are not empty.
inline std::vector<std::string> lines_of_file(const std::string& path) {
  const auto bytes = value_or_raise(formats::read_file(path));
  std::istringstream file({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

/// Writes a file, and makes the folders above it.
inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::error_code ec;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ec);
  if (ec)
    throw Error(fail(Code::io, "can't make the folder {}: {}", path.parent_path().string(), ec.message()));
  auto file = value_or_raise(OutputFile::open(path.string()));
  raise_if(file.write(std::as_bytes(std::span(text))));
  raise_if(file.commit());
}

}  // namespace weft::cli
