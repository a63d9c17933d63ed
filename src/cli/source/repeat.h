#pragma once
#include <map>

#include "cli/source/listing.h"

// Repeated layers: runs of lines that say the same again and again, one after the other.
namespace weft::cli::source {

/// A value that each round gets from the one before.
struct Carried {
  Id first = kNone;  // what the first round gets
  Id made = kNone;   // what the first round makes of it
};

/// The lines [begin, begin + period * times). Only the first round is printed, as the body of a loop.
struct Loop {
  size_t begin = 0, period = 0;
  int64_t times = 0;
  int64_t number = 0;  // of the first round: in the names of what is stored, it counts up
  std::vector<Carried> carried;
  /// For each line of the first round and each operand: which carried value it is, or -1.
  std::vector<std::vector<int>> carries;
  /// Weights and states whose names count up: what stands before and after the number.
  std::map<Id, std::pair<std::string, std::string>> counted;

  size_t end() const { return begin + period * static_cast<size_t>(times); }
  size_t last_round() const { return end() - period; }
};

/// Loops that do not overlap, in order: as much of the program as they can cover.
std::vector<Loop> find_loops(const Listing& listing);

}  // namespace weft::cli::source
