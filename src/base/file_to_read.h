#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/status.h"

namespace weft {

/// Bytes with a shared owner.
struct SharedBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

/// A regular file that is open for reading. All readers of whole files say the same of one that is missing.
class FileToRead {
 public:
  /// Errors: unavailable, with what to do, where there is no such file or it can't be read.
  static Result<FileToRead> open(const std::string& path);
  FileToRead(FileToRead&& other) noexcept;
  FileToRead& operator=(FileToRead&&) = delete;
  ~FileToRead();

  /// All bytes.
  Result<std::vector<std::byte>> read() const;
  /// The same, mapped, read-only: pages are read on demand. The mapping outlives this, and the file's name.
  Result<SharedBytes> map() const;

 private:
  FileToRead(std::string path, int file) : path_(std::move(path)), file_(file) {}
  Status failed(const char* what) const;

  std::string path_;
  int file_;
  size_t size_ = 0;
};

}  // namespace weft
