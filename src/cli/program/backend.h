#pragma once
#include <string>

#include "weft/backends.h"

// Where the subcommands compute.
namespace weft::cli {

/// Raises if the backend computes nothing, so that results would be meaningless.
void check_computes(const std::string& backend = default_backend());

}  // namespace weft::cli
