#pragma once

#include "cli/command.h"
#include "cli/json.h"
#include "runtime/session.h"

namespace weft::cli {

/// The program file that a subcommand is about: its first word.
void add_program_option(Syntax& app, std::string& program);

/// The inputs of a program: options shared by subcommands.
struct ProgramInputs {
  std::string file;                // --inputs
  std::vector<std::string> sizes;  // --size, "batch=4"
};
void add_input_options(Syntax& app, ProgramInputs& o);

/// The file's tensors by name, or random numbers: the same ones each time for one `draw`. A symbol that
/// --size does not name has its smallest value then.
Result<std::vector<runtime::HostTensor>> inputs_of(const program::CompiledProgram& p, const ProgramInputs& o,
                                                   int64_t draw = 0);

/// The value of each symbol for these inputs, as `{"batch": 2}`.
Json sizes_json(const program::CompiledProgram& p, std::span<const runtime::HostTensor> inputs);
/// The same for people: "batch = 2 (1 to 64)", separated by commas; empty if there are none.
std::string sizes_text(const program::CompiledProgram& p, std::span<const runtime::HostTensor> inputs);

}  // namespace weft::cli
