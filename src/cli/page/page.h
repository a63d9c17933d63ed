#pragma once
#include <string>

#include "link/schedule.h"
#include "program/program.h"

namespace weft::cli {

/// What a page shows of a program.
struct PageOf {
  const program::CompiledProgram& program;
  const link::Schedule* schedule = nullptr;  ///< null: there is no plan
  std::string no_plan;                       ///< why
  std::string sizes;                         ///< of the symbols, in the plan
};

/// The graph with shapes, what is fused, kernels, and memory over time, as one HTML page that needs nothing
/// else.
std::string graph_page(const PageOf& of);

}  // namespace weft::cli
