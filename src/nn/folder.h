#pragma once
#include <string>

namespace weft::nn {

/// Makes a folder and those above it where they are missing. Raises io when the disk refuses.
void make_folder(const std::string& folder);

}  // namespace weft::nn
