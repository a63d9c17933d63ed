#pragma once
#include "lab/kernels/contest.h"

// Whether a kernel is right at all: the cases of conformance, with their unusual shapes and numbers.
namespace weft::lab {

/// A case of conformance, in the operation's dtype, and its right answer.
struct ValidationCase {
  std::string why;
  conformance::Ask ask;
  std::vector<conformance::Bounded> right;
};
/// Those of the operation's op that the oracle works out in about this many seconds; with `few`, eight of
/// them.
Result<std::vector<ValidationCase>> validation_cases(const Operation& operation, double oracle_seconds,
                                                     bool few);

/// Asks the row's contender each of them, and counts; a row that is WRONG or INVALID says why.
Status validate(const std::vector<ValidationCase>& cases, const Process& process, Row& row);

}  // namespace weft::lab
