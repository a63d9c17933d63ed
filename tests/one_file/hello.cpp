#include "cli/command.h"

// A subcommand that `weft` does not have: scripts/test copies this file into src/cli of a copy of the tree.
namespace weft::cli {

extern const Command hello_command = {
    "hello", "say hello",
    [](Syntax&, const Common&) -> std::function<int()> { return [] { return std::puts("hello") < 0; }; }};

}  // namespace weft::cli
