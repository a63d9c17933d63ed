#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lab/kernels/statistics.h"

// Two runs of the lab, one before a change and one after it.
namespace weft::lab {

/// A kernel's ratio to the baseline contender in two runs. Both contenders of a run ran by turns on one
/// machine, so the runs may be of other days and other machines.
struct Change {
  std::string operation, contender, baseline;
  Interval before, after;  ///< the baseline's time by the kernel's
  Interval change;         ///< after by before: above 1 the kernel became faster
  Verdict verdict = Verdict::undecided;
  std::string why;  ///< why there is no change to judge; empty: there is
};

struct Changes {
  std::vector<Change> all;
  std::vector<std::string> only_before, only_after;  ///< operations, or contenders of one, in words
};

/// Matches the results of two files by the operation's call and the contender's name; of results of one
/// operation the last counts. The interval of a change comes from those of its two ratios (MOVER), at the
/// confidence at which they were measured.
///
/// Source   Zou and Donner, Construction of confidence limits about effect measures (Statistics in Medicine
///          2008), on logarithms.
Changes changes_between(const std::vector<nlohmann::json>& before, const std::vector<nlohmann::json>& after,
                        double margin);

/// The verdict whose exit status is that of all: the worst; UNDECIDED where nothing could be matched or
/// something is only in the first.
Verdict worst_of(const Changes& changes);

}  // namespace weft::lab
