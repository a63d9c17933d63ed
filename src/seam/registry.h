#pragma once
#include <deque>
#include <map>
#include <set>

#include "seam/device.h"
#include "weft/backends.h"

namespace weft::seam {

/// All backends of the process and their open devices.
class Registry {
 public:
  Registry();

  /// Loads a plug-in: open, symbol, negotiate, table. The status names the step that failed; the report keeps
  /// it too.
  Status load(const std::string& path);
  std::vector<BackendInfo> report();
  /// Is there a device with this name, or with one of a list? Other backends are not asked.
  bool has(std::string_view names);
  /// The device with this name ("reference", "opencl:1"), opened now if it was not yet. Of a list
  /// ("cuda,opencl"), the first that can be opened; skipped names are logged once and entered in the
  /// ledger. Lives until the process ends.
  Result<Device*> open(std::string_view names);
  /// The same device opened once more, beside the one that open() gives: with a handle, queues and memory of
  /// its own, closed when it goes. One at a time, and nothing pooled may be left of it: for tests of
  /// backends.
  Result<std::unique_ptr<Device>> open_again(std::string_view name);
  /// Where a fallback from `device` may go, which was opened by these names. Of a list, those after it, in
  /// that order. Else every other device that computes and can be opened, in the order in which their
  /// backends were found; not a provider's, which has the memory of its home and no other.
  std::vector<Device*> fallbacks(const Device& device, std::string_view names);
  /// The available backend of the highest rank, for users who name none; the first one where none has a rank.
  /// Empty: nothing can be opened.
  std::string preferred();
  /// Kernels of providers that serve the device and are not among its own: for measurements.
  std::vector<KernelSource> guests(Device& device);
  /// The kernel with this id, for this device: one of its own, or of a provider that serves it. Null: none.
  const weft_kernel* find_kernel(Device& device, std::string_view id, std::string* contents = nullptr);
  /// Adds a backend that is no file, under its own name: for tests that wrap a good one.
  Status adopt(const weft_backend& table, std::string origin);

 private:
  struct Entry {
    BackendInfo info;
    const weft_backend* table = nullptr;
    std::vector<weft_capability> capabilities;  // by ordinal
    std::string contents;                       // a hash of its code
    bool probed = false;
    bool provides() const { return table && table->serves; }
  };
  using Found = std::pair<Entry*, uint32_t>;  // the backend, and which of its devices
  Status negotiate(Entry& entry, weft_negotiate_fn function);
  Status keep(Entry& entry, const weft_backend& table);
  void probe(Entry& entry);
  void probe_devices(Entry& entry, uint32_t n);
  void probe_served(Entry& entry);
  void load_install_folder();
  Result<Found> find(std::string_view name);
  Entry* entry_of_kind(std::string_view kind);
  std::vector<Entry*> by_rank();
  Status add(Entry entry, Status loaded);
  Result<Device*> open_one(std::string_view name);
  static Result<std::unique_ptr<Device>> opened(const Entry& entry, uint32_t ordinal, uint32_t index);
  Result<std::unique_ptr<Device>> view(Entry& provider, Device& home, std::string name, uint32_t index);
  static Result<KernelSource> attach(const Entry& provider, Device& home);

  std::mutex mutex_;
  std::deque<Entry> entries_;
  std::map<std::string, Device*, std::less<>> devices_;
  std::map<std::pair<const Entry*, Device*>, KernelSource>
      attached_;  // to devices, which are never destroyed
  std::set<std::string> said_;
  std::deque<weft_backend> tables_;  // tables padded to this header's size
};

/// "cuda,opencl" as its names.
Result<std::vector<std::string>> parse_names(std::string_view names);

Registry& registry();
/// "no backend named ...": what there is, and how plug-ins are loaded. `known`: names with commas between
/// them.
Status unknown_backend(std::string_view name, std::string_view known);
/// The services that every backend gets.
const weft_host& host();

}  // namespace weft::seam
