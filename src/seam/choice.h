#pragma once
#include <cstdint>
#include <string>

// The backends that this thread's work goes to, where it names none.
namespace weft::seam {

/// The names as they were set, "cuda,opencl" or one; empty before that.
const std::string& default_names();

/// Tells lists apart, for the keys of plans: 0 where the thread has none. Small.
inline constinit thread_local uint8_t default_list = 0;

}  // namespace weft::seam
