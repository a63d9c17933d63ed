
#include "weft/backends.h"
#include "cli/command.h"
#include "cli/show.h"

namespace weft::cli {
namespace {

Json to_json(const BackendInfo& b) {
  Json devices = Json::list();
  for (const auto& d : b.devices)
    devices.push_back({{"name", d.name},
                       {"kind", d.kind},
                       {"label", d.label},
                       {"memory", d.memory},
                       {"max_buffer", d.max_buffer},
                       {"units", d.units},
                       {"compiles", d.compiles},
                       {"numerics", d.numerics}});
  return {{"name", b.name},     {"origin", b.origin}, {"version", b.version}, {"state", b.state},
          {"reason", b.reason}, {"serves", b.serves}, {"devices", devices},   {"missing", b.missing}};
}

void print(const BackendInfo& b) {
  fmt::print("{:<12} {:<12} {}{}\n", b.name, b.state, b.origin,
             b.serves.empty() ? "" : ", kernels for devices of kind " + b.serves);
  if (!b.reason.empty()) fmt::print("    {}\n", b.reason);
  for (const auto& d : b.devices)
    fmt::print("    {}: {} ({}){}\n", d.name, d.label, d.kind, d.compiles ? ", compiles text" : "");
  for (const auto& words : b.missing)
    if (b.available()) fmt::print("    {}\n", words);
}

int run(const Common& common) {
  const auto all = get_backends();
  if (common.json) {
    Json out = Json::list();
    for (const auto& b : all) out.push_back(to_json(b));
    fmt::print("{}\n", page_of(out));
    return 0;
  }
  for (const auto& b : all) print(b);
  return 0;
}

}  // namespace

extern const Command backends_command = {
    "backends", "list the backends: found, available or refused, and why",
    [](Syntax&, const Common& common) -> std::function<int()> { return [&common] { return run(common); }; }};

}  // namespace weft::cli
