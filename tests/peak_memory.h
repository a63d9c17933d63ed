#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace weft::testing {

/// The peak memory of `weft` with these arguments, in bytes; its output goes to the file `log`. A failing run
/// fails the test.
int64_t peak_memory(const std::vector<std::string>& arguments, const std::string& log);

}  // namespace weft::testing
