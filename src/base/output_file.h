#pragma once
#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "weft/status.h"

namespace weft {

/// A file that is being written.
///
/// What was under the name stays until commit(), which puts the whole new file there in one move: a reader
/// sees the old one or the new one, whenever the machine stops. A symbolic link stays one, and what it leads
/// to is replaced; a new file in the place of an old one has its permission bits, and the owner who writes.
/// What is no regular file (a pipe, a device, the file that standard output goes to) can't be replaced and is
/// written as it stands.
class OutputFile {
 public:
  static Result<OutputFile> open(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  /// Without a commit(), nothing is left behind.
  ~OutputFile();

  /// Small pieces are gathered: an error of one may come with a later one, or with commit().
  Status write(std::span<const std::byte> bytes);
  Status commit();

 private:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  Status open_beside(const mode_t* mode);
  Status write_now(std::span<const std::byte> bytes);

  std::string path_;             // as it was given
  std::string target_, beside_;  // the name to take, and the one until then; empty: written as it stands
  int file_ = -1;
  std::vector<std::byte> gathered_;
};

/// Brings the names in a folder to the disk, where they live on their own: without it a power cut may undo
/// what was made or moved there. File systems that have no such thing are passed over.
Status sync_folder(const std::string& folder);

/// Does this name lead to where standard output goes? Who writes a file there prints nothing after it.
bool is_standard_output(const std::string& path);

}  // namespace weft
