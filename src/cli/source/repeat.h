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
/// The name of a weight or state whose number changes by the same from round to round.
struct CountedName {
  std::string before, after;
  int64_t first = 0, step = 1;  // the number in the first round, and by how much it grows
};
/// A value of a round: what the first round makes in its place.
struct InRound {
  int64_t round = 0;
  Id first = kNone;
};

/// The lines [begin, begin + period * times). Only the first round is printed, as the body of a loop.
struct Loop {
  size_t begin = 0, period = 0;
  int64_t times = 0;
  int64_t from = 0, step = 1;  // the loop's variable: in the first round, and by how much it grows
  std::vector<Carried> carried;
  /// For each line of the first round and each operand: which carried value it is, or -1.
  std::vector<std::vector<int>> carries;
  /// For each, too: what rounds of another loop made. By how many lines the maker moves from round to round,
  /// or 0.
  std::vector<std::vector<int64_t>> moves;
  std::map<Id, CountedName> counted;

  size_t end() const { return begin + period * static_cast<size_t>(times); }
  size_t last_round() const { return end() - period; }
  bool has(size_t line) const { return line >= begin && line < end(); }
  /// A number that is `first` in the first round and grows by `step`, by the loop's variable `i`.
  std::string number_text(int64_t first, int64_t step) const;
  /// Of a value that is made in the loop.
  InRound place(const Listing& l, const Value& v) const {
    const size_t round = (v.line - begin) / period;
    return {static_cast<int64_t>(round), l.lines[v.line - round * period].outputs[v.result]};
  }
};

/// Loops that do not overlap, in order: as much of the program as they can cover. What a round made may be
/// read behind the loop, or by the rounds of another one, in either order, as gradients of layers are
/// computed last to first.
std::vector<Loop> find_loops(const Listing& listing);

}  // namespace weft::cli::source
