#pragma once
#include <optional>

#include "program/program.h"

namespace weft::link {

/// A program in two parts. The recipe makes constants from constants and runs once; the rest runs each time
/// and reads what the recipe made as weights.
struct Recipe {
  program::CompiledProgram recipe;  ///< no inputs, no states, no symbols
  /// The program with its value numbers and weights; then a weight without a blob for each output of the
  /// recipe, in order.
  program::CompiledProgram rest;
};

/// Splits off the calls that read weights marked in `constant` (by weight) and results of such calls alone.
/// What would take more than twice the memory of its weights stays in the rest, so that quantised weights
/// stay small; so does a view of a weight. Nothing where no call is left for the recipe.
std::optional<Recipe> split_recipe(const program::CompiledProgram& program,
                                   const std::vector<bool>& constant);

}  // namespace weft::link
