#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace weft::lab {

/// Results as tables in Markdown: the last of each operation, and, where an operation was measured more than
/// once, its ratios over time.
std::string markdown_of(const std::vector<nlohmann::json>& results);

}  // namespace weft::lab
