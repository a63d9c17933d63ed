#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace weft::fuzz {

/// A folder for what is read from files, gone when the process ends. scripts/fuzz names the one it lies in.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "weft_fuzz_XXXXXX").string();
    if (!::mkdtemp(name.data())) std::abort();
    path_ = name;
  }
  ~Folder() {
    std::error_code gone;
    std::filesystem::remove_all(path_, gone);
  }
  Folder(const Folder&) = delete;

  std::string path() const { return path_.string(); }
  std::string at(const char* name) const { return (path_ / name).string(); }
  /// The path of the file, which has these bytes now.
  std::string write(const char* name, std::string_view bytes) const {
    std::ofstream(at(name), std::ios::binary) << bytes;
    return at(name);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace weft::fuzz
