#pragma once
#include <string>
#include <vector>

#include "device.hpp"

// The vendor's compiler of texts (NVRTC, hipRTC), opened on first use: text in, machine code for one GPU out.
namespace weft::cuda {

struct Compiler;

/// The library, or null with the reason in `missing`.
const Compiler* compiler(std::string* missing);
/// "13.0", for the keys of the disk cache.
std::string version_of(const Compiler&);
/// Compiles for the device. The error is the compiler's log.
Outcome compile_text(const Compiler&, const char* text, const Device&, std::vector<char>& code);
/// The options it compiles with, for the keys of the disk cache.
std::vector<std::string> options_for(const Device&);

}  // namespace weft::cuda
