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
/// The old file stays until commit(), which replaces it in one rename: a reader sees the old file or the new
/// one, even after a crash. A symbolic link is kept and its target replaced; a new file gets the permission
/// bits of the old one, and the owner who writes. Anything but a regular file (a pipe, a device, the file
/// that standard output goes to) can't be replaced and is written directly.
class OutputFile {
 public:
  static Result<OutputFile> open(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  /// Without a commit(), no file is left behind.
  ~OutputFile();

  /// Small pieces are buffered: the error of one may come with a later one, or with commit().
  Status write(std::span<const std::byte> bytes);
  Status commit();

 private:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  Status open_beside(const mode_t* mode);
  Status write_now(std::span<const std::byte> bytes);

  std::string path_;             // as passed by the caller
  std::string target_, beside_;  // the final name, and the temporary one; empty: written directly
  int file_ = -1;
  std::vector<std::byte> gathered_;
};

/// Removes what processes that were killed while they wrote this file left beside it. Only where nobody else
/// writes it now.
void remove_unfinished(const std::string& path);

/// Syncs the entries of a folder to the disk: without it a power failure may undo a creation or a rename.
/// Ignored on file systems that can't.
Status sync_folder(const std::string& folder);

/// Is this name the file of standard output? After writing such a file, print nothing.
bool is_standard_output(const std::string& path);

}  // namespace weft
