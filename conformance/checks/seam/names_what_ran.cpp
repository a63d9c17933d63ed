#include "conformance/check.h"
#include "conformance/seam/usual.h"

namespace weft::conformance::checks::names_what_ran {
namespace {

// "<provider>.<op>.<variant>", with the op that the record serves.
Found well_named(const std::string& provider, const weft_kernel& k) {
  const std::string id = k.id ? k.id : "";
  const std::string want = provider + "." + k.op + ".";
  return Found::wrong(id.starts_with(want) && id.size() > want.size()
                          ? ""
                          : fmt::format("a record of {} for {} is called '{}', wanted '{}<variant>'",
                                        provider, k.op, id, want));
}

void run(CheckRun& run) {
  auto& device = *value_or_raise(seam::registry().open(run.backend()));
  std::map<std::string, int> seen;
  for (const auto& source : device.sources)
    for (const weft_kernel* k : source.kernels) {
      run.run(fmt::format("{} of {}", k->id, source.provider),
              [&] { return well_named(source.provider, *k); });
      run.run(fmt::format("{} once", k->id), [&] {
        return Found::wrong(++seen[k->id] == 1 ? "" : fmt::format("two records are called {}", k->id));
      });
    }
}

}  // namespace

extern const Check check = {"names_what_ran",
                            "each kernel has a name of its own that says whose it is and what for", run};

}  // namespace weft::conformance::checks::names_what_ran
