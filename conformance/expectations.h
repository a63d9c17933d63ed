#pragma once
#include <string>
#include <vector>

#include "conformance/check.h"
#include "weft/status.h"

// A file of a backend's expected refusals and known faults. Both kinds of drift fail: regressions, and silent
// improvements.
namespace weft::conformance {

/// A line of the file:
///
///     refused  ops/cast f8e4m3*   does not have f8
///     wrong    ops/exp f16*       issue 12: the driver's exp is off by 3 ulp
///
/// the state, cases as a pattern in which * stands for anything, and words: part of the reason, or the issue.
struct Expectation {
  Found::State state = Found::State::refused;  ///< refused, or failed for `wrong`
  std::string pattern, words;
  int line = 0;
};

class Expectations {
 public:
  /// Errors   unavailable if the file can't be read; corrupt, with the line, for anything else in it.
  static Result<Expectations> read(const std::string& path);

  /// The result after expectations: a known failure passes; an unexpected refusal, or a pass instead of
  /// another expected answer, fails and says so.
  Found judged(const CaseResult& r);
  /// Lines that matched no case; after a run of all cases they are out of date.
  std::vector<Expectation> unmatched() const;

 private:
  std::string path_;
  std::vector<Expectation> lines_;
  std::vector<bool> matched_;
};

/// The file for these results: a line for each prefix of names (an op; an op in a dtype; a whole name) whose
/// cases are all refused, with the common part of their reasons.
std::string expectations_of(const std::vector<CaseResult>& results);

}  // namespace weft::conformance
