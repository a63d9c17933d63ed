#pragma once
#include <deque>
#include <map>

#include "seam/device.h"
#include "weft/backends.h"

namespace weft::seam {

/// All backends of the process and the devices that were opened.
class Registry {
 public:
  Registry();

  /// Loads a plug-in: open, symbol, negotiate, table. The status names the step that failed; the report keeps
  /// it too.
  Status load(const std::string& path);
  std::vector<BackendInfo> report();
  /// Is there a device with this name? Other backends are not asked.
  bool has(std::string_view name);
  /// The device with this name ("reference", "opencl:1"), opened now if it was not yet. Lives until the
  /// process ends.
  Result<Device*> open(std::string_view name);
  /// The same device opened once more, beside the one that open() gives: with a handle, queues and memory of
  /// its own, closed when it goes. One at a time, and nothing pooled may be left of it: for who tests
  /// backends.
  Result<std::unique_ptr<Device>> open_again(std::string_view name);
  /// Every other device that can be opened and can compute, in the order in which their backends were found:
  /// where a fallback may go. A backend of kind "null" computes nothing and is never one.
  std::vector<Device*> open_others(const Device& but);
  /// Gives a backend that is not in the list as a file, under its own name: for tests that wrap a good one.
  Status adopt(const weft_backend& table, std::string origin);

 private:
  struct Entry {
    BackendInfo info;
    const weft_backend* table = nullptr;
    std::vector<weft_capability> capabilities;  // by ordinal
    bool probed = false;
  };
  Status negotiate(Entry& entry, weft_negotiate_fn function);
  void probe(Entry& entry);
  void load_install_folder();
  Result<std::pair<Entry*, uint32_t>> find(std::string_view name);
  Status add(Entry entry, Status loaded);
  static Result<std::unique_ptr<Device>> opened(const Entry& entry, uint32_t ordinal, uint32_t index);

  std::mutex mutex_;
  std::deque<Entry> entries_;
  std::map<std::string, Device*, std::less<>> devices_;
  std::deque<weft_backend> tables_;  // tables padded to this header's size
};

Registry& registry();
/// The services that every backend gets.
const weft_host& host();

}  // namespace weft::seam
