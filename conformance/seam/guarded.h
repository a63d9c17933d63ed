#pragma once
#include <functional>

#include "conformance/seam/rig.h"

// Launches in memory that watches over itself.
namespace weft::conformance {

/// On host memory: each operand, result and workspace lies between pages that may not be touched, at the end
/// of its own or at the beginning. Whoever touches them ends the process: run it in a child.
void launch_between_pages(Rig& rig, seam::Plan& plan, const Ask& ask, bool at_end);

/// On any memory: each result that is no update of an operand lies within a larger buffer, whose other bytes
/// must be the same afterwards. What is wrong; empty: nothing.
std::string launch_among_others(Rig& rig, seam::Plan& plan, const Ask& ask);

/// Runs jobs 0 to n - 1 in child processes, on one thread, one after the other; what ends a child is the
/// fault of the job that it was at, and the next child goes on behind it. An Error of a job is a fault too.
/// One text for each job; empty: nothing happened.
std::vector<std::string> in_children(size_t n, const std::function<void(size_t)>& job);

}  // namespace weft::conformance
