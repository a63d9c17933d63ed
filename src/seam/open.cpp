#include <algorithm>

#include "base/log.h"
#include "seam/builtin.h"
#include "seam/ledger.h"
#include "seam/registry.h"
#include "seam/tables.h"

// Devices: opened, seen through a provider, chosen from a list.
namespace weft::seam {

Result<std::vector<std::string>> parse_names(std::string_view names) {
  std::vector<std::string> list;
  for (size_t from = 0; from <= names.size();) {
    const size_t end = std::min(names.find(',', from), names.size());
    if (end == from) return invalid("'{}' is no list of backends: wanted names with commas between", names);
    list.emplace_back(names.substr(from, end - from));
    from = end + 1;
  }
  return list;
}

Result<std::unique_ptr<Device>> Registry::opened(const Entry& entry, uint32_t ordinal, uint32_t index) {
  const auto& table = *entry.table;
  const std::string name = entry.info.name + (ordinal ? fmt::format(":{}", ordinal) : "");
  CError error;
  weft_capability capability{.size = sizeof(weft_capability)};
  weft_device handle = nullptr;
  if (const weft_code code = table.open_device(ordinal, &handle, &capability, error.out()); code != WEFT_OK)
    return error.status(code).at(fmt::format("opening {}", name));
  Status fit = settle(capability, ordinal);
  auto device = std::make_unique<Device>(table, handle, capability, index);
  WEFT_CHECK(std::move(fit).at(fmt::format("opening {}", name)));
  WEFT_CHECK(device->start());
  const weft_kernel* const* kernels = nullptr;
  uint32_t n = 0;
  if (const weft_code code = table.kernels(handle, &kernels, &n, error.out()); code != WEFT_OK)
    return error.status(code).at(fmt::format("kernels of {}", name));
  auto records = checked_kernels(kernels, n);
  if (!records.ok()) return records.take_status().at(fmt::format("kernels of {}", name));
  device->sources.push_back({entry.info.name, std::move(records).value(), entry.contents});
  for (const auto& provider : builtin_providers()) {
    auto more = provider.kernels(table, handle, capability, host());
    sort_by_rank(more);
    if (!more.empty()) device->sources.push_back({provider.name, std::move(more), builtin_contents()});
  }
  return device;
}

// A provider's kernels for a device of another backend.
Result<KernelSource> Registry::attach(const Entry& provider, Device& home) {
  const auto& table = *provider.table;
  const std::string what = fmt::format("{} on {}", provider.info.name, home.name());
  CError error;
  if (table.attach) {
    const weft_code code = table.attach(&home.backend(), home.c(), &home.capability(), error.out());
    if (code != WEFT_OK) return error.status(code).at(what);
    home.at_close.push_back([detach = table.detach, device = home.c()] { detach(device); });
  }
  const weft_kernel* const* kernels = nullptr;
  uint32_t n = 0;
  if (const weft_code code = table.kernels(home.c(), &kernels, &n, error.out()); code != WEFT_OK)
    return error.status(code).at("kernels of " + what);
  auto records = checked_kernels(kernels, n);
  if (!records.ok()) return records.take_status().at("kernels of " + what);
  return KernelSource{provider.info.name, std::move(records).value(), provider.contents};
}

// The provider's kernels are asked before those of the device that it serves.
Result<std::unique_ptr<Device>> Registry::view(Entry& provider, Device& home, std::string name,
                                               uint32_t index) {
  const auto key = std::pair<const Entry*, Device*>(&provider, &home);
  const bool kept = index < kMaxDevices;  // not for a device that is opened once more, and closed
  auto known = attached_.find(key);
  if (!kept || known == attached_.end()) {
    WEFT_TRY(auto source, attach(provider, home));
    known = attached_.insert_or_assign(key, std::move(source)).first;
  }
  auto device = std::make_unique<Device>(home, std::move(name), index);
  device->sources = home.sources;
  device->sources.insert(device->sources.begin(), known->second);
  if (!kept) attached_.erase(known);
  return device;
}

Result<Device*> Registry::open_one(std::string_view name) {
  if (const auto at = devices_.find(name); at != devices_.end()) return at->second;
  WEFT_TRY(const auto found, find(name));
  const auto [entry, ordinal] = found;
  const std::string full = entry->info.name + (ordinal ? fmt::format(":{}", ordinal) : "");
  if (const auto at = devices_.find(full); at != devices_.end()) return at->second;  // "native:0"
  Device* home = nullptr;
  if (entry->provides()) {
    const std::string served =
        entry_of_kind(entry->table->serves)->info.name + full.substr(entry->info.name.size());
    WEFT_TRY(home, open_one(served));
  }
  if (devices_.size() >= kMaxDevices)
    return fail(Code::unsupported, "{} devices are open already", kMaxDevices);
  const auto index = static_cast<uint32_t>(devices_.size());
  auto device = home ? view(*entry, *home, full, index) : opened(*entry, ordinal, index);
  if (!device.ok()) return device.take_status();
  return devices_[full] = std::move(device).value().release();
}

Result<Device*> Registry::open(std::string_view names) {
  std::lock_guard lock(mutex_);
  if (names.find(',') == names.npos) return open_one(names);
  WEFT_TRY(const auto list, parse_names(names));
  std::string passed;
  for (const auto& name : list) {
    auto device = open_one(name);
    if (!device.ok()) {
      passed += fmt::format("{}{}: {}", passed.empty() ? "" : "; ", name, device.status().message());
      continue;
    }
    if (passed.empty()) return device;
    ledger().chosen(device.value()->name(), passed);
    if (said_.insert(fmt::format("{} {}", names, passed)).second)
      warn("of the backends {}, {} is taken: {}", names, name, passed);
    return device;
  }
  return fail(Code::unavailable, "none of the backends {} can be opened: {}", names, passed);
}

Result<std::unique_ptr<Device>> Registry::open_again(std::string_view name) {
  std::lock_guard lock(mutex_);
  WEFT_TRY(const auto found, find(name));
  const auto [entry, ordinal] = found;
  if (!entry->provides()) return opened(*entry, ordinal, kMaxDevices);
  WEFT_TRY(auto home, opened(*entry_of_kind(entry->table->serves), ordinal, kMaxDevices));
  WEFT_TRY(auto device, view(*entry, *home, std::string(name), kMaxDevices));
  device->at_close.push_back([home = std::shared_ptr<Device>(std::move(home))] {});  // closes after its view
  return device;
}

std::vector<Device*> Registry::fallbacks(const Device& device, std::string_view names) {
  std::vector<Device*> out;
  if (names.find(',') != names.npos) {
    const auto list = parse_names(names);
    for (const auto& name : list.ok() ? list.value() : std::vector<std::string>()) {
      auto other = open(name);
      if (!other.ok()) continue;  // open() has told of it when it was passed over, or will
      if (*other == &device)
        out.clear();
      else if (std::ranges::find(out, *other) == out.end())
        out.push_back(*other);
    }
    return out;
  }
  for (const auto& info : report())
    for (const auto& d : info.devices) {
      if (d.name == device.name() || !d.computes || !info.serves.empty()) continue;
      if (auto other = open(d.name); other.ok()) out.push_back(*other);
    }
  return out;
}

std::vector<KernelSource> Registry::guests(Device& device) {
  const std::lock_guard lock(mutex_);
  std::vector<KernelSource> out;
  for (auto& e : entries_) {
    if (!e.provides() || device.capability().kind != std::string_view(e.table->serves)) continue;
    const auto is = [&](const KernelSource& s) { return s.provider == e.info.name; };
    if (std::ranges::any_of(device.sources, is)) continue;
    probe(e);
    if (e.info.devices.empty()) continue;
    const auto key = std::pair<const Entry*, Device*>(&e, &device.home());
    auto known = attached_.find(key);
    if (known == attached_.end()) {
      auto source = attach(e, device.home());
      if (!source.ok()) continue;
      known = attached_.emplace(key, std::move(source).value()).first;
    }
    out.push_back(known->second);
  }
  return out;
}

const weft_kernel* Registry::find_kernel(Device& device, std::string_view id, std::string* contents) {
  const auto in = [&](const std::vector<KernelSource>& sources) -> const weft_kernel* {
    for (const auto& source : sources)
      for (const weft_kernel* k : source.kernels)
        if (k->id == id) {
          if (contents) *contents = source.contents + contents_of(*k);
          return k;
        }
    return nullptr;
  };
  if (const auto* k = in(device.sources)) return k;
  {  // a provider that is not there is not looked for
    const std::lock_guard lock(mutex_);
    const auto provider = id.substr(0, id.find('.'));
    if (std::ranges::none_of(entries_,
                             [&](const Entry& e) { return e.provides() && e.info.name == provider; }))
      return nullptr;
  }
  return in(guests(device));
}

}  // namespace weft::seam
