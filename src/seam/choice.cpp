#include "seam/choice.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "seam/registry.h"

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
  throw Error(seam::unknown_backend(name, known));
}

void load_backend(const std::string& path) { raise_if(seam::registry().load(path)); }

namespace {
thread_local std::string thread_default;  // the device's name
thread_local std::string thread_names;    // as it was set

// The same list has the same number in all threads.
uint8_t number_of(const std::string& names) {
  if (names.find(',') == names.npos) return 0;
  static std::mutex mutex;
  static std::map<std::string, uint8_t> lists;
  const std::lock_guard lock(mutex);
  if (const auto at = lists.find(names); at != lists.end()) return at->second;
  if (lists.size() == UINT8_MAX)
    throw Error(fail(Code::unsupported, "{} lists of backends were the default by now; wanted at most that",
                     lists.size()));
  return lists[names] = static_cast<uint8_t>(lists.size() + 1);
}
}  // namespace

namespace seam {
const std::string& default_names() { return thread_names; }
}  // namespace seam

std::string default_backend() {
  if (thread_default.empty()) thread_default = seam::registry().preferred();
  if (thread_default.empty()) throw Error(fail(Code::unavailable, "no backend can be opened here"));
  return thread_default;
}

void set_default_backend(const std::string& names) {
  auto device = value_or_raise(seam::registry().open(names))->name();
  seam::default_list = number_of(names);
  thread_default = std::move(device), thread_names = names;
}

OnBackend::OnBackend(const std::string& names) : device_(default_backend()), names_(thread_names) {
  set_default_backend(names);
}
OnBackend::~OnBackend() {
  thread_default.swap(device_), thread_names.swap(names_);
  seam::default_list = number_of(thread_names);
}

void set_default_backends(const std::vector<std::string>& names) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ",") + name;
  set_default_backend(list);
}

std::vector<std::string> default_backends() {
  return thread_names.empty() ? std::vector{default_backend()}
                              : value_or_raise(seam::parse_names(thread_names));
}

std::string current_device() { return default_backend(); }

}  // namespace weft
