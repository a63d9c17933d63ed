#pragma once
#include "compiler/module.h"

// What becomes one call. Several patterns may want the same call; who gets it is said here, so that the order
// in which they run decides nothing.
namespace weft::compiler {

/// What a pattern makes calls of, the strongest claim first: where two want a call, the stronger has it.
enum class Claim : uint8_t {
  nodes,     ///< of the graph. What they become is a call for the patterns below
  products,  ///< products and convolutions, with what follows them: that costs nothing there
  calls,     ///< other calls
};

/// One file of src/compiler/patterns each.
struct Pattern {
  const char* name;  ///< of its pass
  Claim claim;
  /// What it wants of the nodes and calls that no fusion or group of `m` has. It sees all stronger claims.
  std::vector<Group> (*find)(const Module& m);
};

/// Adds the pattern to those of `m`, and finds anew what all of these make: the same in any order of their
/// passes. Of claims that are equally strong and overlap, that of the earlier call is taken, then the one of
/// more calls, then the one whose pattern comes first in the alphabet; the others are asked again.
Status apply(const Pattern& pattern, Module& m, const Options& options);

}  // namespace weft::compiler
