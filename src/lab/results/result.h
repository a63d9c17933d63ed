#pragma once
#include <nlohmann/json_fwd.hpp>

#include "lab/kernels/contest.h"
#include "lab/results/machine.h"

// What the lab found, as JSON.
namespace weft::lab {

/// What the comparisons of a run have in common.
struct Setting {
  Machine machine;
  std::string version, commit;  ///< of Weft
};

/// The exit status of a verdict: 0 FASTER and SAME, 3 SLOWER, 4 UNDECIDED, 5 WRONG, 6 INVALID.
int status_of(Verdict verdict);

/// A line of a result file: what result.schema.json says, with the date of now.
nlohmann::json result_of(const Comparison& comparison, const ContestOptions& options, const Setting& setting);
/// The same as text.
std::string result_line(const Comparison& comparison, const ContestOptions& options, const Setting& setting);

}  // namespace weft::lab
