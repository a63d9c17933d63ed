#include "lab/kernels/record.h"

#include <algorithm>

#include "lab/kernels/provider.h"
#include "seam/prepared_kernel.h"
#include "seam/registry.h"

namespace weft::lab {
namespace {

constexpr std::string_view kAll = ".*";

// The id of the kernel that the device takes without measurements; empty: none.
std::string own_choice(seam::Device& device, const seam::CallPtr& call) {
  const seam::Unmeasured without_preferences;
  std::vector<seam::Refusal> refusals;
  auto plan = seam::select(device, call, &refusals);
  return plan.ok() && *plan ? (*plan)->kernel.id : "";
}

}  // namespace

Result<std::vector<std::string>> expanded(const std::vector<std::string>& contenders, const Operation& o) {
  std::vector<std::string> all;
  for (const auto& contender : contenders) {
    if (!contender.ends_with(kAll)) {
      all.push_back(contender);
      continue;
    }
    const auto name = contender.substr(0, contender.size() - kAll.size());
    WEFT_TRY(seam::Device * device, seam::registry().open(name));
    WEFT_TRY(const auto call, lab::describe(ask_of(o)));
    const bool chosen_too = std::ranges::find(contenders, name) != contenders.end();
    const auto chosen = own_choice(*device, call);
    const size_t before = all.size();
    for (const auto& source : device->sources)
      for (const weft_kernel* kernel : source.kernels)
        // A kernel of no backend, as those that run a body op by op, can't be named.
        if (provider_of(kernel->id).ok() && seam::is_for(*kernel, call->desc()) &&
            !(chosen_too && chosen == kernel->id) && seam::prepare_with(*device, *kernel, call).ok())
          all.push_back(kernel->id);
    if (all.size() == before && !(chosen_too && !chosen.empty()))
      return invalid("no kernel of {} takes {}", name, o.label());
  }
  return all;
}

Result<seam::Measured> record(const Comparison& c) {
  const Row& base = c.rows.at(0);
  auto device = seam::registry().open(base.contender);
  if (!device.ok())
    return invalid("the baseline, {}, is no device whose choice could be recorded: {}", base.contender,
                   device.status().message());
  const Row* fastest = nullptr;
  for (const Row& row : c.rows) {
    std::string contents;
    if (row.verdict != Verdict::faster || (fastest && fastest->ratio.middle >= row.ratio.middle)) continue;
    if (seam::registry().find_kernel(**device, row.kernel, &contents) && contents == row.identity)
      fastest = &row;
  }
  if (!fastest) return seam::Measured{};
  WEFT_TRY(const auto call, lab::describe(ask_of(c.operation)));
  const auto median = [](const Row& row) {
    return static_cast<uint64_t>(std::max(1.0, quantile(row.nanoseconds, 0.5)));
  };
  seam::Measured kept{.call = seam::signature(call->desc()),
                      .kernel = fastest->kernel,
                      .contents = fastest->identity,
                      .instead = base.kernel,
                      .nanoseconds = median(*fastest),
                      .nanoseconds_instead = median(base)};
  WEFT_CHECK(seam::preferences().keep(**device, std::span(&kept, 1)));
  return kept;
}

}  // namespace weft::lab
