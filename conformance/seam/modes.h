#pragma once
#include <string>

// Rounding and denormal modes of the processor: state of each thread that a backend must restore, or
// everything that runs afterwards computes differently.
namespace weft::conformance {

/// The modes of this thread that differ from a program's initial ones; empty if none.
std::string changed_modes();
/// Resets this thread to the initial modes.
void restore_modes();
/// The same for the threads of parallel_for and this one: a mode that is changed on any of them. Resets all
/// of them.
std::string changed_modes_of_workers();

}  // namespace weft::conformance
