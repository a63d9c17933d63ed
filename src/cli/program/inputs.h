#pragma once
#include "cli/command.h"
#include "runtime/session.h"

namespace weft::cli {

/// What a program is run on: options that subcommands share.
struct ProgramInputs {
  std::string file;                // --inputs
  std::vector<std::string> sizes;  // --size, "batch=4"
};
void add_input_options(Syntax& app, ProgramInputs& o);

/// The file's tensors by name, or numbers that are made up: the same ones each time.
Result<std::vector<runtime::HostTensor>> inputs_of(const program::CompiledProgram& p, const ProgramInputs& o);

}  // namespace weft::cli
