#pragma once
#include <vector>

#include "cli/checking/alone.h"
#include "cli/json.h"
#include "cli/text/screen.h"
#include "conformance/check.h"

// The output of `weft check` for one device.
namespace weft::cli {

/// Prints the first few failures of a check as they are found, and each check with its result; on a terminal,
/// also the running case and the remaining time of its check.
void say_each_check(conformance::CheckRun& run, LiveLine& live);

/// A failure, and its cause if that was searched.
struct Judged {
  const conformance::CaseResult* failure;
  std::optional<Alone> alone;
  std::string repeat;  ///< the command, with the cases that have to run before it
};

void print_end(const conformance::CheckRun& run, const std::vector<Judged>& failures);
Json to_json(const conformance::CheckRun& run, const std::vector<Judged>& failures);

}  // namespace weft::cli
