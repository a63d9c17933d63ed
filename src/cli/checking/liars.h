#pragma once
#include "conformance/check.h"

namespace weft::cli {

/// Runs the suite on every liar about this backend: the named ones and `drawn` of the seed, or those in
/// `only`. Prints each with the case that catches it, or why its fault can't show on this backend; returns 1
/// if one survives.
int check_liars(const std::string& backend, const conformance::CheckOptions& options, int64_t drawn,
                bool as_json);

/// Prints the names of all liars with their faults.
void print_liars(bool as_json);

}  // namespace weft::cli
