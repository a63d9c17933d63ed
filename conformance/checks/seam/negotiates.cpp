#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <deque>

#include "conformance/check.h"
#include "conformance/seam/rig.h"
#include "seam/builtin.h"
#include "weft/backends.h"

// Hosts of other versions, and structs shorter than this header's, as a backend meets them in the field.
namespace weft::conformance::checks::negotiates {
namespace {

/// Null for a wrapped backend, which is no file and not built in.
weft_negotiate_fn negotiate_of(const std::string& backend) {
  for (const auto& b : seam::builtin_backends())
    if (backend == b.name) return b.negotiate;
  for (const auto& b : get_backends()) {
    if (b.name != backend) continue;
    void* library = ::dlopen(b.origin.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    return library ? reinterpret_cast<weft_negotiate_fn>(::dlsym(library, "weft_negotiate")) : nullptr;
  }
  return nullptr;
}

/// A struct whose `size` is smaller than it is, between bytes that must not change.
template <class S>
class Short {
 public:
  explicit Short(size_t bytes) : bytes_(bytes) {
    std::memset(static_cast<void*>(&s_), 0xa5, sizeof s_);
    std::memset(static_cast<void*>(&s_), 0, bytes);
    s_.size = static_cast<uint32_t>(bytes);
  }
  S* get() { return &s_; }
  bool overrun() const {
    const auto* p = reinterpret_cast<const unsigned char*>(&s_);
    for (size_t i = bytes_; i < sizeof s_; ++i)
      if (p[i] != 0xa5) return true;
    return false;
  }

 private:
  S s_;
  size_t bytes_;
};

/// A host of another version. Never freed: a backend may have kept its address.
const weft_host& host_of(uint32_t abi) {
  static auto& all = *new std::deque<weft_host>;
  auto& other = all.emplace_back(seam::host());
  other.abi_min = other.abi_max = abi;
  return other;
}

// A host with no version in common with this backend.
Found refuses_host(weft_negotiate_fn negotiate, uint32_t abi) {
  if (!negotiate) return Found::skipped("it is wrapped here, and negotiates with nobody");
  const weft_backend* table = nullptr;
  Short<weft_error> error(sizeof(weft_error));
  const weft_code code = negotiate(&host_of(abi), &table, error.get());
  if (code != WEFT_VERSION) return Found::wrong(fmt::format("answers {} to it, not WEFT_VERSION", code));
  if (table) return Found::wrong("it gives its table all the same");
  return Found::wrong(error.get()->text[0] ? "" : "it says no word");
}

Found short_error(weft_negotiate_fn negotiate) {
  if (!negotiate) return Found::skipped("it is wrapped here, and negotiates with nobody");
  const weft_backend* table = nullptr;
  Short<weft_error> error(offsetof(weft_error, text) + 8);
  (void)negotiate(&host_of(WEFT_ABI + 1), &table, error.get());
  return Found::wrong(error.overrun() ? "its text of an error is longer than the room for it" : "");
}

Found short_probe(const weft_backend& table) {
  Short<weft_probe> probe(offsetof(weft_probe, reason));
  Short<weft_error> error(sizeof(weft_error));
  if (table.probe(probe.get(), error.get()) == WEFT_OK && probe.get()->n_devices == 0)
    return Found::wrong("no devices, though one is open");
  return Found::wrong(probe.overrun() ? "probe writes behind the struct that it was given" : "");
}

Found short_capability(const weft_backend& table) {
  Short<weft_capability> capability(offsetof(weft_capability, dialect));
  Short<weft_error> error(sizeof(weft_error));
  weft_device device = nullptr;
  if (table.open_device(0, &device, capability.get(), error.get()) != WEFT_OK)
    return Found::refused(error.get()->text);
  table.close_device(device);
  return Found::wrong(capability.overrun() ? "open_device writes behind the struct that it was given" : "");
}

Found describes_devices(const weft_backend& table) {
  if (!table.describe) return Found::refused("it describes no devices");
  weft_capability opened{.size = sizeof opened}, described{.size = sizeof described};
  Short<weft_error> error(sizeof(weft_error));
  weft_device device = nullptr;
  if (table.describe(0, &described, error.get()) != WEFT_OK)
    return Found::wrong(fmt::format("device 0 is open, but describe: {}", error.get()->text));
  if (table.open_device(0, &device, &opened, error.get()) != WEFT_OK)
    return Found::refused(error.get()->text);
  table.close_device(device);
  if (std::memcmp(&opened, &described, sizeof opened) != 0)
    return Found::wrong("describe says something else of the device than open_device does");
  if (table.describe(4096, &described, error.get()) == WEFT_OK)
    return Found::wrong("it describes device 4096");
  return Found::wrong(error.get()->text[0] ? "" : "describe says no word of why there is no device 4096");
}

Found no_such_device(const weft_backend& table) {
  Short<weft_capability> capability(sizeof(weft_capability));
  Short<weft_error> error(sizeof(weft_error));
  weft_device device = nullptr;
  if (table.open_device(4096, &device, capability.get(), error.get()) == WEFT_OK && device)
    return Found::wrong("it opens device 4096");
  return Found::wrong(error.get()->text[0] || capability.get()->reason[0] ? "" : "it says no word");
}

void run(CheckRun& run) {
  const Rig rig(run.backend());
  const auto negotiate = negotiate_of(run.backend());
  const weft_backend& table = rig.device.backend();
  run.run("a newer host", [&] { return refuses_host(negotiate, WEFT_ABI + 1); });
  run.run("an older host", [&] { return refuses_host(negotiate, 0); });
  run.run("a shorter weft_error", [&] { return short_error(negotiate); });
  run.run("a shorter weft_probe", [&] { return short_probe(table); });
  run.run("a shorter weft_capability", [&] { return short_capability(table); });
  run.run("a device that is not there", [&] { return no_such_device(table); });
  run.run("devices that are described", [&] { return describes_devices(table); });
}

}  // namespace

extern const Check check = {
    "negotiates",
    "hosts of other versions are refused in words; shorter structs are not overrun; descriptions hold", run};

}  // namespace weft::conformance::checks::negotiates
