#include "conformance/check.h"
#include "conformance/seam/usual.h"
#include "seam/tables.h"

namespace weft::conformance::checks::ranks_its_kernels {
namespace {

using Kernels = std::vector<const weft_kernel*>;

Found told_apart(const Kernels& kernels) {
  for (size_t i = 1; i < kernels.size(); ++i) {
    const int32_t rank = seam::rank_of(*kernels[i]), before = seam::rank_of(*kernels[i - 1]);
    if (rank > before)
      return Found::wrong(fmt::format("{} has the rank {} and is asked after {}, which has {}",
                                      kernels[i]->id, rank, kernels[i - 1]->id, before));
    if (rank == before)
      return Found::wrong(
          fmt::format("{} and {} have the rank {}: which is asked first depends on the order of a list",
                      kernels[i - 1]->id, kernels[i]->id, rank));
  }
  return {};
}

// In the order in which they are asked.
void run(CheckRun& run) {
  auto& device = *value_or_raise(seam::registry().open(run.backend()));
  if (device.backend().abi < 2)
    return run.run("all",
                   [] { return Found::skipped("version 1 has no ranks: the order of the list counts"); });
  bool any = false;
  for (const auto& source : device.sources) {
    std::map<std::string, Kernels> by_op;
    for (const weft_kernel* k : source.kernels) by_op[k->op].push_back(k);
    for (const auto& [op, kernels] : by_op)
      if (any |= kernels.size() > 1; kernels.size() > 1)
        run.run(fmt::format("{} of {}", op, source.provider), [&] { return told_apart(kernels); });
  }
  if (!any) run.run("all", [] { return Found::skipped("it has no two kernels for one op"); });
}

}  // namespace

extern const Check check = {
    "ranks_its_kernels", "of two kernels for one op, ranks say which is asked first, and not a list's order",
    run};

}  // namespace weft::conformance::checks::ranks_its_kernels
