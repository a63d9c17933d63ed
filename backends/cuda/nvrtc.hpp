#pragma once
#include <string>
#include <vector>

#include "weft/backend.hpp"

// NVRTC, opened on first use: text in, machine code for one architecture out.
namespace weft::cuda {

struct Nvrtc;

/// The library, or null with the reason in `missing`.
const Nvrtc* nvrtc(std::string* missing);
/// "13.0", for the keys of the disk cache.
std::string version_of(const Nvrtc&);
/// Compiles for sm_`architecture`. The error is the compiler's log.
backend::Outcome compile_text(const Nvrtc&, const char* text, int architecture, std::vector<char>& cubin);
/// The options it compiles with, for the keys of the disk cache.
std::vector<std::string> options_for(int architecture);

}  // namespace weft::cuda
