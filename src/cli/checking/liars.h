#pragma once
#include "conformance/check.h"

namespace weft::cli {

/// Brings every liar about this backend before the suite: the named ones and `drawn` of the seed, or those
/// that `only` names. Prints each with the case that catches it; 1 if one survives.
int check_liars(const std::string& backend, const conformance::CheckOptions& options, int64_t drawn,
                bool as_json);

}  // namespace weft::cli
