#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/checking/alone.h"
#include "cli/text/screen.h"
#include "conformance/check.h"

// What `weft check` prints of a run on one device.
namespace weft::cli {

/// Prints each failure as it is found, the first few of a check, and each check with what came of it; for a
/// terminal, the case that runs and how long its check will take.
void say_each_check(conformance::CheckRun& run, LiveLine& live);

/// A failure, and what it depends on where that was looked for.
struct Judged {
  const conformance::CaseResult* failure;
  std::optional<Alone> alone;
  std::string repeat;  ///< the command, with the cases that have to run before it
};

void print_end(const conformance::CheckRun& run, const std::vector<Judged>& failures);
nlohmann::json to_json(const conformance::CheckRun& run, const std::vector<Judged>& failures);

}  // namespace weft::cli
