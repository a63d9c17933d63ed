#pragma once
#include <string>
#include <vector>

#include "conformance/check.h"
#include "weft/status.h"

// What is known of a backend's answers, in a file beside the suite. It is checked for drift both ways: what
// gets worse fails, and so does what silently got better.
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
  /// Errors   unavailable where the file can't be read; corrupt, with the line, where it says something else.
  static Result<Expectations> read(const std::string& path);

  /// The result as it counts: a failure that is known passes, a refusal that is not, and a pass where another
  /// answer was expected, fail and say so.
  Found judged(const CaseResult& r);
  /// Lines that no case matched; after a run of all cases they are out of date.
  std::vector<Expectation> unmatched() const;

 private:
  std::string path_;
  std::vector<Expectation> lines_;
  std::vector<bool> matched_;
};

/// The file that describes these results: a line for each beginning of names (an op; an op in a dtype; a
/// whole name) whose cases are all refused, with what their reasons have in common.
std::string expectations_of(const std::vector<CaseResult>& results);

}  // namespace weft::conformance
