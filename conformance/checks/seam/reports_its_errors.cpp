#include "conformance/check.h"
#include "conformance/seam/usual.h"

namespace weft::conformance::checks::reports_its_errors {
namespace {

Found wild_index(Rig& rig) {
  const auto run = rig.run({"gather", {counting({4}), array({1}, {70}, DType::i64)}});
  if (run.ok()) return Found::wrong("index 70 of 4 was no error");
  if (run.status().message().find("index 70") == std::string::npos)
    return Found::wrong(run.status().message());
  return Found::wrong(differs(rig, {"add", {counting({4}), counting({4})}}, "after the error"));
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  run.run("gather beyond the end", [&] {
    if (rig.device.capability().dialect[0])
      return Found::skipped("text cannot raise: a wild index gives NaN there (docs/primitives.md)");
    return wild_index(rig);
  });
}

}  // namespace

extern const Check check = {
    "reports_its_errors", "a launch that fails says so at the next synchronize, and the queue goes on", run};

}  // namespace weft::conformance::checks::reports_its_errors
