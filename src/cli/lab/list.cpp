#include "cli/lab/lab.h"
#include "cli/show.h"
#include "lab/kernels/provider.h"
#include "weft/backends.h"

// What can be compared here, and what can't, with the reason.
namespace weft::cli {
namespace {

void require_providers(const std::vector<std::string>& names) {
  std::string known;
  for (const lab::Provider* p : lab::all_providers())
    known += (known.empty() ? "" : ", ") + std::string(p->name);
  for (const auto& name : names)
    if (std::ranges::none_of(lab::all_providers(), [&](const lab::Provider* p) { return p->name == name; }))
      throw UsageError(invalid("--providers: there is no provider '{}'; there are {}", name, known));
}

}  // namespace

int list_kernels(const LabOptions& o, const Common& common) {
  Json operations = Json::list(), providers = Json::list();
  std::string words = "operations:\n";
  for (const auto& operation : value_or_raise(lab::operations_of(o.choice))) {
    operations.push_back(operation.label());
    words += "  " + operation.label() + "\n";
  }
  for (const lab::Provider* p : lab::all_providers()) {
    Json offers = Json::list();
    words += fmt::format("{}: {}\n", p->name, p->takes_what);
    for (const auto& offer : p->offers()) {
      offers.push_back({{"contender", offer.contender}, {"reason", offer.reason}});
      words +=
          fmt::format("  {:<16} {}\n", offer.contender, offer.reason.empty() ? "available" : offer.reason);
    }
    providers.push_back({{"provider", p->name}, {"takes", p->takes_what}, {"contenders", offers}});
  }
  words.pop_back();
  Show(common.json).result({{"operations", operations}, {"providers", providers}}, words);
  return 0;
}

std::vector<std::string> contenders_on(const std::string& device) {
  const DeviceInfo* found = nullptr;
  std::string known;
  const auto backends = get_backends();
  for (const auto& b : backends)
    for (const auto& d : b.devices) {
      if (d.name == device) found = &d;
      if (d.computes) known += (known.empty() ? "" : ", ") + d.name;
    }
  if (!found)
    throw UsageError(invalid("--device: there is no device '{}' here; there are {}", device, known));
  std::vector<std::string> names = {device};
  for (const auto& b : backends)
    if (b.serves == found->kind)
      for (const auto& d : b.devices) names.push_back(d.name);
  return names;
}

std::vector<std::string> contenders_here(const std::vector<std::string>& providers,
                                         const std::string& device) {
  require_providers(providers);
  const auto on = device.empty() ? std::vector<std::string>() : contenders_on(device);
  std::vector<std::string> names;
  for (const lab::Provider* p : lab::all_providers()) {
    if (!providers.empty() && std::ranges::find(providers, p->name) == providers.end()) continue;
    for (const auto& offer : p->offers())
      if (offer.reason.empty() && (on.empty() || std::ranges::find(on, offer.contender) != on.end()))
        names.push_back(offer.contender);
  }
  const auto first = std::ranges::find(names, device.empty() ? default_backend() : device);
  if (first != names.end()) std::rotate(names.begin(), first, first + 1);
  return names;
}

}  // namespace weft::cli
