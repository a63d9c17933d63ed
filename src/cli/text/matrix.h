#pragma once
#include <string>

#include "conformance/check.h"

namespace weft::cli {

/// Op x dtype: which kernels ran, whether the op ran as simpler ones, or why it is refused. Markdown, or
/// JSON.
std::string matrix_text(const conformance::CheckRun& run, bool as_json);

}  // namespace weft::cli
