#pragma once
#include <string_view>

namespace weft::importer {

/// Why an op of ATen is not imported, and what to do instead: "nonzero.default". Null where nothing is known
/// of it.
const char* why_refused(std::string_view name);

}  // namespace weft::importer
