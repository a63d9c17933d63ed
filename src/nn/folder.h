#pragma once
#include <string>

namespace weft::nn {

/// Creates a folder and its missing parents. Raises io if that fails.
void make_folder(const std::string& folder);

}  // namespace weft::nn
