#pragma once
#include <string>

#include "program/program.h"

namespace weft::cli::source {

/// The main() of a printed program, whose function has this name: it reads weights and states from a program
/// file, inputs from a safetensors file, and writes outputs, and the weights and states as they are then
/// where it is told to.
std::string main_text(const program::CompiledProgram& program, const std::string& function);

}  // namespace weft::cli::source
