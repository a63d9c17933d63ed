#pragma once
#include "cli/program/inputs.h"

// The tests that a command which compiles puts into the file: `weft verify` runs them.
namespace weft::cli {

struct TestOptions {
  int64_t count = -1;  // --tests; -1: one, if it takes about a second
};
void add_test_options(Syntax& app, TestOptions& o);

/// On the inputs that the options name. Further tests have other numbers and, where a symbol allows it and
/// no --size says otherwise, twice the size of the one before.
void add_tests(program::CompiledProgram& p, const TestOptions& o, ProgramInputs inputs);

}  // namespace weft::cli
