#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace weft::testing {

/// The most memory that `weft` with these arguments had, in bytes; its output goes to the file `log`. A run
/// that fails is a failure of the test.
int64_t peak_memory(const std::vector<std::string>& arguments, const std::string& log);

}  // namespace weft::testing
