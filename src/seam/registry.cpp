#include "seam/registry.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/input_file.h"
#include "base/log.h"
#include "seam/builtin.h"
#include "seam/tables.h"

namespace weft::seam {
namespace {

constexpr const char* kBuiltIn = "built in";

// Of a plug-in's file. One that can't be read again has none, and no measurement of it holds.
std::string hash_of(const std::string& path) {
  InputFile in(path);
  XXH3_state_t* state = XXH3_createState();
  XXH3_64bits_reset(state);
  std::vector<char> piece(1 << 16);
  while (const size_t n = in.read(piece)) XXH3_64bits_update(state, piece.data(), n);
  const uint64_t h = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  return in.failed() ? "" : fmt::format("{:016x}", h);
}

DeviceInfo describe(const weft_capability& c, const std::string& backend) {
  return {c.ordinal ? fmt::format("{}:{}", backend, c.ordinal) : backend,
          terminated(c.kind, sizeof c.kind),
          terminated(c.label, sizeof c.label),
          terminated(c.numerics, sizeof c.numerics),
          c.memory,
          c.max_buffer,
          c.units,
          c.dtypes != 0,
          c.dialect[0] != 0};
}

}  // namespace

Registry::Registry() {
  for (const auto& builtin : builtin_backends()) {
    Entry entry;
    entry.info.name = builtin.name, entry.info.origin = kBuiltIn, entry.contents = builtin_contents();
    Status s = negotiate(entry, builtin.negotiate);
    (void)add(std::move(entry), std::move(s));  // the report tells
  }
  load_install_folder();
}

// Beside the program: <prefix>/lib/weft/backends. Never the working directory.
void Registry::load_install_folder() {
  std::error_code none;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", none);
  if (none) return;
  const auto folder = program.parent_path().parent_path() / "lib" / "weft" / "backends";
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(folder, none))
    if (file.path().extension() == ".so") files.push_back(file.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files)
    if (Status s = load(file); !s.ok()) warn("{}", s.message());
}

Status Registry::add(Entry entry, Status loaded) {
  if (loaded.ok())
    for (const auto& other : entries_)
      if (other.table && other.info.name == entry.info.name)
        loaded = fail(Code::invalid_argument, "a backend named {} is there already ({})", entry.info.name,
                      other.info.origin);
  if (loaded.ok()) {
    if (entry.info.origin != kBuiltIn) probe(entry);
    entries_.push_back(std::move(entry));
    return loaded;
  }
  if (entry.table) tables_.pop_back();
  entry.info.state = "refused", entry.info.reason = loaded.message(), entry.table = nullptr;
  // Each attempt returns the error; the report lists it once.
  const auto before = std::ranges::find_if(entries_, [&](const Entry& e) {
    return e.info.state == "refused" && e.info.origin == entry.info.origin;
  });
  (before != entries_.end() ? *before : entries_.emplace_back()) = std::move(entry);
  return loaded;
}

// Nothing may throw across the seam; an exception while a plug-in is loaded is reported as an error.
static Status unthrown(const std::function<Status()>& call) {
  try {
    return call();
  } catch (const std::exception& e) {
    return fail(Code::version, "it threw an exception, which no backend may: {}", e.what());
  } catch (...) {
    return fail(Code::version, "it threw an exception, which no backend may");
  }
}

Status Registry::negotiate(Entry& entry, weft_negotiate_fn function) {
  CError error;
  const weft_backend* table = nullptr;
  WEFT_CHECK(unthrown([&] { return error.status(function(&host(), &table, error.out())); }).at("negotiate"));
  if (!table) return fail(Code::version, "negotiate: it answered yes but gave no table");
  WEFT_CHECK(check_table(*table).at("table"));
  return keep(entry, *table).at("table");
}

Status Registry::keep(Entry& entry, const weft_backend& table) {
  auto& mine = tables_.emplace_back();
  if (Status s = padded(table, mine); !s.ok()) {
    tables_.pop_back();
    return s;
  }
  entry.table = &mine;
  entry.info.name = mine.name;
  entry.info.version = mine.version ? mine.version : "";
  entry.info.serves = mine.serves ? mine.serves : "";
  return {};
}

Status Registry::adopt(const weft_backend& table, std::string origin) {
  std::lock_guard lock(mutex_);
  Entry entry;
  entry.info.origin = std::move(origin);
  Status s = check_table(table);
  if (s.ok()) s = keep(entry, table);
  return add(std::move(entry), std::move(s));
}

// A built-in backend is probed when it is first asked for: that may load a driver of tens of MiB.
void Registry::probe(Entry& entry) {
  if (entry.probed) return;
  entry.probed = true;
  CError error;
  weft_probe probe{.size = sizeof(weft_probe), .n_devices = 0, .reason = {}};
  const Status probed = unthrown([&] { return error.status(entry.table->probe(&probe, error.out())); });
  auto& info = entry.info;
  info.state = "unavailable";
  if (!probed.ok()) {
    info.reason = probed.message();
  } else if (probe.n_devices == 0) {
    info.reason = terminated(probe.reason, sizeof probe.reason);
  }
  if (probed.ok() && probe.n_devices > 0)
    entry.provides() ? probe_served(entry) : probe_devices(entry, std::min(probe.n_devices, kMaxDevices));
  if (!info.devices.empty())
    info.state = "available", info.reason.clear();
  else if (!info.missing.empty())
    info.reason = info.missing.back();
}

void Registry::probe_devices(Entry& entry, uint32_t n) {
  CError error;
  for (uint32_t i = 0; i < n; ++i) {
    weft_capability c{.size = sizeof(weft_capability)};
    const Status fit = unthrown([&]() -> Status {
      const weft_backend& table = *entry.table;
      if (table.describe) {
        WEFT_CHECK(error.status(table.describe(i, &c, error.out())));
      } else {
        weft_device device = nullptr;
        WEFT_CHECK(error.status(table.open_device(i, &device, &c, error.out())));
        table.close_device(device);
      }
      return settle(c, i);
    });
    if (!fit.ok()) {
      entry.info.missing.push_back(fmt::format("device {}: {}", i, fit.message()));
      continue;
    }
    entry.capabilities.push_back(c);
    entry.info.devices.push_back(describe(c, entry.info.name));
  }
}

// A provider has the devices of the backend that it serves, under its own name. Where there is none it is
// probed again when it is asked for again: that backend may be loaded later.
void Registry::probe_served(Entry& entry) {
  const Entry* home = entry_of_kind(entry.table->serves);
  if (!home) {
    entry.info.reason = fmt::format("it serves devices of kind {}, and there are none", entry.table->serves);
    entry.probed = false;
    return;
  }
  entry.capabilities = home->capabilities;
  for (const auto& c : entry.capabilities) entry.info.devices.push_back(describe(c, entry.info.name));
}

// Those that may be the default first; the others in the order in which they were found.
std::vector<Registry::Entry*> Registry::by_rank() {
  std::vector<Entry*> all;
  for (auto& e : entries_)
    if (e.table && !e.provides()) all.push_back(&e);
  std::ranges::stable_sort(all, [](auto* a, auto* b) { return a->table->rank > b->table->rank; });
  return all;
}

// The backend whose devices a provider serves: the one of the highest rank. One that is named like the kind
// is asked first, so that no other driver is loaded.
Registry::Entry* Registry::entry_of_kind(std::string_view kind) {
  auto all = by_rank();
  std::ranges::stable_partition(all, [&](const Entry* e) { return e->info.name == kind; });
  for (Entry* e : all) {
    probe(*e);
    for (const auto& d : e->info.devices)
      if (d.kind == kind) return e;
  }
  return nullptr;
}

std::string Registry::preferred() {
  const std::lock_guard lock(mutex_);
  for (Entry* e : by_rank()) {
    probe(*e);
    if (!e->info.devices.empty()) return e->info.devices[0].name;
  }
  return "";
}

Status Registry::load(const std::string& path) {
  Entry entry;
  entry.contents = hash_of(path);
  entry.info.name = std::filesystem::path(path).stem().string();
  entry.info.origin = path;
  void* library = nullptr;
  const auto opened = [&]() -> Status {
    library = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return fail(Code::unavailable, "open: {}", dlerror());
    auto* function = reinterpret_cast<weft_negotiate_fn>(dlsym(library, "weft_negotiate"));
    if (!function)
      return fail(Code::version, "symbol: it exports no weft_negotiate, so it is not a Weft backend");
    return negotiate(entry, function);
  };
  std::lock_guard lock(mutex_);
  Status s = opened();
  s = add(std::move(entry), std::move(s));
  if (!s.ok() && library) dlclose(library);  // a good one stays: its devices outlive every tensor
  return std::move(s).at("backend " + path);
}

std::vector<BackendInfo> Registry::report() {
  std::lock_guard lock(mutex_);
  std::vector<BackendInfo> out;
  for (auto& e : entries_) {
    if (e.table) probe(e);
    out.push_back(e.info);
  }
  return out;
}

bool Registry::has(std::string_view names) {
  std::lock_guard lock(mutex_);
  const auto list = parse_names(names);
  return list.ok() && std::ranges::any_of(list.value(), [&](const auto& name) { return find(name).ok(); });
}

Result<Registry::Found> Registry::find(std::string_view name) {
  const std::string_view backend = name.substr(0, name.find(':'));
  if (name.substr(backend.size()) == ":0") name = backend;  // the first device has the backend's name
  const auto good =
      std::ranges::any_of(entries_, [&](const Entry& e) { return e.info.name == backend && e.table; });
  for (auto& e : entries_) {
    if (e.info.name != backend || (good && !e.table)) continue;  // a refused one may have its name
    if (e.table) probe(e);
    for (uint32_t i = 0; i < e.info.devices.size(); ++i)
      if (e.info.devices[i].name == name) return std::pair{&e, e.capabilities[i].ordinal};
    const size_t n = e.info.devices.size();
    if (n == 0) return fail(Code::unavailable, "backend {} is {}: {}", backend, e.info.state, e.info.reason);
    if (backend == name)
      return fail(Code::unavailable, "{} can't be opened: {}", name, e.info.missing.front());
    return invalid("'{}': {} has {} device{}, numbered from 0", name, e.info.name, n, n == 1 ? "" : "s");
  }
  std::string known;
  for (auto& e : entries_) {
    if (e.table) probe(e);
    for (const auto& d : e.info.devices) known += (known.empty() ? "" : ", ") + d.name;
  }
  return unknown_backend(name, known);
}

Status unknown_backend(std::string_view name, std::string_view known) {
  return invalid(
      "no backend named '{}'; there are: {}. A plug-in's backend is there once its file is loaded (--plugin, "
      "load_backend)",
      name, known);
}

Registry& registry() {
  static auto* one = new Registry;  // devices outlive every tensor, also those in static storage
  return *one;
}

}  // namespace weft::seam
