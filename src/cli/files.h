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
    throw Error(
        invalid("{} would overwrite {} {}, which is read here; choose another name", out, option, read));
}

/// The file that an option names for writing; "-" is standard output, as it is standard input for --data.
/// Raises if it can't be written, before there is anything to write. Its folder must be there: a new one
/// would hide a misspelt name. Not tried for pipes and devices, whose reader would see the trial as the end.
inline std::string output_path(const std::string& out) {
  using enum std::filesystem::file_type;
  const std::string path = out == "-" ? "/dev/stdout" : out;
  std::error_code ec;
  const auto type = std::filesystem::status(path, ec).type();
  if (type != fifo && type != character && type != socket) (void)value_or_raise(OutputFile::open(path));
  return path;
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

/// Writes a file into a folder that is there.
inline void write_text(const std::filesystem::path& path, std::string_view text) {
  auto file = value_or_raise(OutputFile::open(path.string()));
  raise_if(file.write(std::as_bytes(std::span(text))));
  raise_if(file.commit());
}

}  // namespace weft::cli
