#include "lab/results/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/thread_pool.h"
#include "lab/kernels/provider.h"
#include "seam/preference.h"
#include "seam/registry.h"

namespace weft::lab {
namespace {

std::string system_name() {
  utsname name{};
  return ::uname(&name) == 0 ? fmt::format("{} {} {}", name.sysname, name.release, name.machine) : "unknown";
}

std::string c_library() {
  char text[64] = "unknown";
  return ::confstr(_CS_GNU_LIBC_VERSION, text, sizeof text) ? text : "unknown";
}

// The device of "native" and of "native.softmax.rows".
std::map<std::string, std::string> devices_of(std::span<const std::string> contenders) {
  std::map<std::string, std::string> found;
  for (const auto& contender : contenders) {
    if (contender.find('/') != std::string::npos) continue;
    const auto name = contender.substr(0, contender.find('.'));
    if (!seam::registry().has(name)) continue;
    if (const auto device = seam::registry().open(name); device.ok())
      found[contender] = seam::machine_of(*device.value());
  }
  return found;
}

std::map<std::string, DeviceLimits> limits_of_devices(std::span<const std::string> contenders,
                                                      const std::vector<DType>& dtypes) {
  std::map<std::string, DeviceLimits> found;
  for (const auto& contender : contenders) {
    auto provider = provider_of(contender);
    const auto name = provider.ok() && (*provider)->device ? (*provider)->device(contender) : "";
    auto device = name.empty() ? Result<seam::Device*>(nullptr) : seam::registry().open(name);
    if (!device.ok() || !*device || (*device)->host_memory()) continue;
    const auto& home = (*device)->home().name();
    if (found.contains(home)) continue;
    if (auto limits = measure_limits(**device, dtypes)) found[home] = std::move(*limits);
  }
  return found;
}

std::map<std::string, std::string> software_of(std::span<const std::string> contenders) {
  std::map<std::string, std::string> all{{"compiler of weft", __VERSION__}, {"C library", c_library()}};
  for (const auto& b : seam::registry().report())
    if (b.available() && !b.version.empty() && std::ranges::any_of(contenders, [&](const std::string& c) {
          return c == b.name || c.starts_with(b.name + ".") || c.starts_with(b.name + ":");
        }))
      all[b.name] = b.version;
  return all;
}

}  // namespace

Machine this_machine(std::span<const std::string> contenders, WithLimits limits,
                     const std::vector<DType>& dtypes) {
  double load = 0;
  if (::getloadavg(&load, 1) != 1) load = 0;  // before the limits add to it
  return {.processor = seam::processor_name(),
          .system = system_name(),
          .cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency())),
          .threads = thread_count(),
          .memory_bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                          static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)),
          .load = load,
          .devices = devices_of(contenders),
          .software = software_of(contenders),
          .limits = limits == WithLimits::yes ? measure_limits() : std::nullopt,
          .device_limits = limits == WithLimits::yes ? limits_of_devices(contenders, dtypes)
                                                     : std::map<std::string, DeviceLimits>()};
}

}  // namespace weft::lab
