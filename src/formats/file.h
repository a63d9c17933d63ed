#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_to_read.h"
#include "weft/status.h"

namespace weft::formats {

using weft::SharedBytes;

/// True if nothing has this name. False if that can't be determined (no permission); reading then reports it.
bool is_missing(const std::string& path);

/// All bytes of a file; unavailable when it can't be read.
Result<std::vector<std::byte>> read_file(const std::string& path);

/// The same, mapped: pages are read on demand. For files that are replaced, like ours, and never truncated:
/// touching a page that is gone crashes the process.
Result<SharedBytes> map_file(const std::string& path);
/// Drops the pages of mapped bytes from memory; they are read again on demand.
void release_pages(std::span<const std::byte> mapped);

/// Keeps the old file unless the whole new one could be written: see OutputFile in base/output_file.h.
Status write_file(const std::string& path, std::span<const std::byte> bytes);
Status write_file(const std::string& path, std::string_view text);

}  // namespace weft::formats
