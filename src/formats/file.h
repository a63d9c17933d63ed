#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/status.h"

namespace weft::formats {

/// True if nothing has this name. False if that can't be determined (no permission); reading it then says
/// why.
bool is_missing(const std::string& path);

/// All bytes of a file; unavailable when it can't be read.
Result<std::vector<std::byte>> read_file(const std::string& path);

/// Bytes that somebody keeps.
struct SharedBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};
/// The same, mapped: pages come from the disk when they are wanted. For files that are replaced, like ours,
/// and never cut: a page that is gone when it is wanted ends the process.
Result<SharedBytes> map_file(const std::string& path);
/// Gives the pages of mapped bytes back: they are read again when they are wanted again.
void release_pages(std::span<const std::byte> mapped);

/// The old file stays unless all of the new one could be written: see OutputFile in base/output_file.h.
Status write_file(const std::string& path, std::span<const std::byte> bytes);
Status write_file(const std::string& path, std::string_view text);

}  // namespace weft::formats
