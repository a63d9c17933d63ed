#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/status.h"

namespace weft::formats {

/// All bytes of a file; unavailable when it can't be read.
Result<std::vector<std::byte>> read_file(const std::string& path);

/// Replaces `path` in one move: a reader sees the old file or the new one, whenever the machine stops. The
/// bytes go to a file beside it, to the disk, and then under the name. On failure the old file stays and
/// nothing is left behind.
Status write_file_atomically(const std::string& path, std::span<const std::byte> bytes);
Status write_file_atomically(const std::string& path, std::string_view text);

}  // namespace weft::formats
