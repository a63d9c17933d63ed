#pragma once
#include <string>

// How the processor rounds, and what it does with denormals: state of each thread that a backend has to leave
// as it found it, or everything that runs afterwards computes something else.
namespace weft::conformance {

/// In which modes this thread is, where they are not those that a program begins with; empty: they are.
std::string changed_modes();
/// Puts this thread into the modes that a program begins with.
void restore_modes();
/// The same of the threads that parallel_for has, this one included: what is changed on one of them. Puts all
/// of them back.
std::string changed_modes_of_workers();

}  // namespace weft::conformance
