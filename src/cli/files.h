#pragma once
#include <filesystem>

#include "weft/status.h"

namespace weft::cli {

/// Raises where `out` is, by whatever name or link, the file that `option` had this command read.
inline void refuse_to_overwrite(const std::string& out, const char* option, const std::string& read) {
  std::error_code one_is_not_there;
  if (std::filesystem::equivalent(out, read, one_is_not_there))
    throw Error(invalid("--out {} would overwrite {} {}, which is read here; choose another name", out,
                        option, read));
}

}  // namespace weft::cli
