#pragma once
#include "cli/command.h"
#include "program/program.h"

// Code of devices that a command which compiles puts into the file.
namespace weft::cli {

struct CodeOptions {
  std::vector<std::string> backends;  // --device-code
};
void add_code_options(Syntax& app, CodeOptions& o);

/// Runs the program's tests on each of the backends, and keeps what these compile.
void add_device_code(program::CompiledProgram& p, const CodeOptions& o);

/// Says which code the program carries in vain, as the devices of `backend` are others.
void note_unused_code(const program::CompiledProgram& p, const std::string& backend);

}  // namespace weft::cli
