#pragma once
#include <span>
#include <string>

#include "program/program.h"

// The bytes of the sections "plan" and "origin".
namespace weft::program {

std::string write_plan(const CompiledProgram& program);
std::string write_origin(const CompiledProgram& program);

/// All of the program but its blobs and origin. Holds no promise beyond memory safety: verify() is the next
/// step.
Result<CompiledProgram> read_plan(std::span<const std::byte> bytes);
Status read_origin(std::span<const std::byte> bytes, CompiledProgram& program);

}  // namespace weft::program
