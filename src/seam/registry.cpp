#include "seam/registry.h"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <filesystem>
#include <functional>

#include "base/log.h"
#include "seam/builtin.h"

namespace weft::seam {
namespace {

// The host reads no further than a table says it reaches, and needs at least the required entries.
constexpr uint32_t kLeastTable = offsetof(weft_backend, kernels) + sizeof(weft_backend::kernels);

constexpr uint32_t kLeastKernel = offsetof(weft_kernel, launch) + sizeof(weft_kernel::launch);
constexpr uint32_t kMostBytes = 64 * 1024;  // of any struct that makes sense
constexpr uint32_t kMostKernels = 64 * 1024;
constexpr const char* kBuiltIn = "built in";

// Users type it, and ids of kernels begin with it.
Status check_name(const char* name) {
  if (!name || !*name) return fail(Code::version, "it has no name");
  const size_t n = strnlen(name, 65);
  const bool word =
      std::all_of(name, name + n, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
  if (n > 64 || !word)
    return fail(Code::version, "its name must be at most 64 letters, digits, '_' and '-', got '{}'",
                std::string_view(name, n));
  return {};
}

Status check_table(const weft_backend& t) {
  if (t.size < kLeastTable || t.size > kMostBytes)
    return fail(Code::version, "its table says it has {} bytes; {} to {} make sense", t.size, kLeastTable,
                kMostBytes);
  if (t.abi < WEFT_ABI_MIN || t.abi > WEFT_ABI)
    return fail(Code::version, "it was built for seam version {}, this host speaks {} to {}", t.abi,
                WEFT_ABI_MIN, WEFT_ABI);
  WEFT_CHECK(check_name(t.name));
  const struct {
    const char* name;
    bool there;
  } required[] = {{"probe", t.probe != nullptr},
                  {"open_device", t.open_device != nullptr},
                  {"close_device", t.close_device != nullptr},
                  {"allocate", t.allocate != nullptr},
                  {"free", t.free != nullptr},
                  {"open_queue", t.open_queue != nullptr},
                  {"close_queue", t.close_queue != nullptr},
                  {"copy", t.copy != nullptr},
                  {"synchronize", t.synchronize != nullptr},
                  {"kernels", t.kernels != nullptr}};
  for (const auto& r : required)
    if (!r.there) return fail(Code::version, "the required entry {} is missing", r.name);
  return {};
}

// Entries that only make sense together.
Status check_groups(const weft_backend& t) {
  const int points = (t.mark != nullptr) + (t.wait != nullptr) + (t.await != nullptr);
  if (points != 0 && points != 3)
    return fail(Code::version, "it has {} of the three entries mark, wait and await; wanted all or none",
                points);
  const int sequences =
      (t.make_sequence != nullptr) + (t.run_sequence != nullptr) + (t.free_sequence != nullptr);
  if (sequences != 0 && sequences != 3)
    return fail(Code::version,
                "it has {} of the three entries make_sequence, run_sequence and free_sequence; wanted all or "
                "none",
                sequences);
  return {};
}

std::string terminated(const char* text, size_t capacity) {
  return std::string(text, strnlen(text, capacity));
}

// "<provider>.<op>.<variant>": the ledger, the refusals and whoever leaves a kernel out go by its parts.
bool is_id(std::string_view id) {
  const size_t op = id.find('.') + 1, variant = op ? id.find('.', op) + 1 : 0;
  return op > 1 && variant > op + 1 && variant < id.size();
}

// The records that a backend lists: each is read only after this has looked at it.
Result<std::vector<const weft_kernel*>> checked_kernels(const weft_kernel* const* list, uint32_t n) {
  if (n > kMostKernels || (n > 0 && !list))
    return fail(Code::version, "it lists {} of them{}; at most {} make sense", n, list ? "" : ", and no list",
                kMostKernels);
  for (uint32_t i = 0; i < n; ++i) {
    const weft_kernel* k = list[i];
    if (!k) return fail(Code::version, "number {} is null", i);
    if (k->size < kLeastKernel || k->size > kMostBytes)
      return fail(Code::version, "number {} says it has {} bytes; {} to {} make sense", i, k->size,
                  kLeastKernel, kMostBytes);
    const struct {
      const char* name;
      bool there;
    } required[] = {{"id", k->id && *k->id},
                    {"op", k->op && *k->op},
                    {"reads", k->reads || k->n_reads == 0},
                    {"accepts", k->accepts != nullptr},
                    {"launch", k->launch != nullptr}};
    for (const auto& r : required)
      if (!r.there) return fail(Code::version, "number {} has no {}", i, r.name);
    if (!is_id(k->id))
      return fail(Code::version, "number {}, for {}, has the id '{}'; wanted <provider>.<op>.<variant>", i,
                  k->op, k->id);
  }
  return std::vector(list, list + n);
}

// What a backend says of a device, as the host goes by it: texts end, and what is counted with makes sense.
Status settle(weft_capability& c, uint32_t ordinal) {
  if (c.available == 0)
    return fail(Code::unavailable, "{}",
                *c.reason ? terminated(c.reason, sizeof c.reason) : "it gave no reason");
  c.size = sizeof c, c.ordinal = ordinal;
  c.kind[sizeof c.kind - 1] = c.label[sizeof c.label - 1] = c.reason[sizeof c.reason - 1] = 0;
  c.dialect[sizeof c.dialect - 1] = c.numerics[sizeof c.numerics - 1] = 0;
  c.offset_alignment = std::max(c.offset_alignment, 1u);
  if (!std::has_single_bit(c.offset_alignment))
    return fail(Code::version, "its buffers begin at multiples of {}, which is no power of two",
                c.offset_alignment);
  if (c.queue_kind != WEFT_QUEUE_INLINE && c.queue_kind != WEFT_QUEUE_ORDERED)
    return fail(Code::version, "its queues are of kind {}, which this host does not know", c.queue_kind);
  return {};
}

DeviceInfo describe(const weft_capability& c, const std::string& backend) {
  return {c.ordinal ? fmt::format("{}:{}", backend, c.ordinal) : backend,
          terminated(c.kind, sizeof c.kind),
          terminated(c.label, sizeof c.label),
          terminated(c.numerics, sizeof c.numerics),
          c.memory,
          c.max_buffer,
          c.units,
          c.dialect[0] != 0};
}

}  // namespace

Registry::Registry() {
  for (const auto& builtin : builtin_backends()) {
    Entry entry;
    entry.info.name = builtin.name, entry.info.origin = kBuiltIn;
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
  // Whoever tries again is told again; the report tells it once.
  const auto before = std::ranges::find_if(entries_, [&](const Entry& e) {
    return e.info.state == "refused" && e.info.origin == entry.info.origin;
  });
  (before != entries_.end() ? *before : entries_.emplace_back()) = std::move(entry);
  return loaded;
}

// Nothing throws across the seam; what does all the same is told like an error, while the plug-in is being
// loaded.
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
  // A shorter table is an older one: what it lacks is absent.
  auto& padded = tables_.emplace_back();
  std::memset(&padded, 0, sizeof padded);
  std::memcpy(&padded, table, std::min<size_t>(table->size, sizeof padded));
  if (Status s = check_groups(padded); !s.ok()) {
    tables_.pop_back();
    return std::move(s).at("table");
  }
  entry.table = &padded;
  entry.info.name = padded.name;
  entry.info.version = padded.version ? padded.version : "";
  return {};
}

Status Registry::adopt(const weft_backend& table, std::string origin) {
  std::lock_guard lock(mutex_);
  Entry entry;
  entry.info.origin = std::move(origin);
  Status s = check_table(table);
  if (s.ok()) s = check_groups(table);
  if (s.ok()) {
    entry.table = &tables_.emplace_back(table);
    entry.info.name = table.name;
    entry.info.version = table.version ? table.version : "";
  }
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
  for (uint32_t i = 0; probed.ok() && i < std::min(probe.n_devices, kMaxDevices); ++i) {
    weft_capability c{.size = sizeof(weft_capability)};
    const Status fit = unthrown([&]() -> Status {
      weft_device device = nullptr;
      WEFT_CHECK(error.status(entry.table->open_device(i, &device, &c, error.out())));
      entry.table->close_device(device);
      return settle(c, i);
    });
    if (!fit.ok()) {
      info.missing.push_back(fmt::format("device {}: {}", i, fit.message()));
      continue;
    }
    entry.capabilities.push_back(c);
    info.devices.push_back(describe(c, info.name));
  }
  if (!info.devices.empty())
    info.state = "available", info.reason.clear();
  else if (!info.missing.empty())
    info.reason = info.missing.back();
}

Status Registry::load(const std::string& path) {
  Entry entry;
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

bool Registry::has(std::string_view name) {
  std::lock_guard lock(mutex_);
  return find(name).ok();
}

Result<std::pair<Registry::Entry*, uint32_t>> Registry::find(std::string_view name) {
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
  return invalid("no backend named '{}'; there are: {}", name, known);
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
  device->sources.push_back({entry.info.name, std::move(records).value()});
  for (const auto& provider : builtin_providers())
    if (auto more = provider.kernels(table, handle, capability, host()); !more.empty())
      device->sources.push_back({provider.name, std::move(more)});
  return device;
}

Result<Device*> Registry::open(std::string_view name) {
  std::lock_guard lock(mutex_);
  if (const auto at = devices_.find(name); at != devices_.end()) return at->second;
  WEFT_TRY(const auto found, find(name));
  if (devices_.size() >= kMaxDevices)
    return fail(Code::unsupported, "{} devices are open already", kMaxDevices);
  WEFT_TRY(auto device, opened(*found.first, found.second, static_cast<uint32_t>(devices_.size())));
  return devices_[std::string(name)] = device.release();
}

Result<std::unique_ptr<Device>> Registry::open_again(std::string_view name) {
  std::lock_guard lock(mutex_);
  WEFT_TRY(const auto found, find(name));
  return opened(*found.first, found.second, kMaxDevices);
}

std::vector<Device*> Registry::open_others(const Device& but) {
  std::vector<Device*> out;
  for (const auto& info : report())
    for (const auto& d : info.devices) {
      if (d.name == but.name() || d.kind == "null") continue;
      if (auto device = open(d.name); device.ok()) out.push_back(*device);
    }
  return out;
}

Registry& registry() {
  static auto* one = new Registry;  // devices outlive every tensor, also those in static storage
  return *one;
}

}  // namespace weft::seam

namespace weft {

std::vector<BackendInfo> get_backends() { return seam::registry().report(); }

std::vector<std::string> get_available_backends() {
  std::vector<std::string> names;
  for (const auto& b : get_backends())
    for (const auto& d : b.devices) names.push_back(d.name);
  return names;
}

bool is_backend_available(const std::string& name) { return seam::registry().has(name); }

BackendInfo get_backend_info(const std::string& name) {
  std::string known;
  for (auto& b : get_backends()) {
    if (b.name == name) return b;
    known += (known.empty() ? "" : ", ") + b.name;
  }
  throw Error(invalid("no backend named '{}'; there are: {}", name, known));
}

void load_backend(const std::string& path) { raise_if(seam::registry().load(path)); }

namespace {
thread_local std::string thread_default;
}  // namespace

// The fastest of the processor's own, where this build has it.
std::string default_backend() {
  if (thread_default.empty()) thread_default = is_backend_available("native") ? "native" : "reference";
  return thread_default;
}

void set_default_backend(const std::string& name) {
  value_or_raise(seam::registry().open(name));
  thread_default = name;
}

std::string current_device() { return default_backend(); }

}  // namespace weft
