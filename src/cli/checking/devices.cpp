#include "cli/checking/devices.h"

#include <fmt/core.h>

#include <algorithm>

#include "weft/backends.h"

namespace weft::cli {
namespace {

// The name of the backend that a plug-in brings.
std::string loaded(const std::string& path) {
  const auto before = get_backends();
  load_backend(path);
  for (const auto& b : get_backends())
    if (b.origin != "built in" &&
        std::ranges::none_of(before, [&](const auto& known) { return known.name == b.name; }))
      return b.name;
  throw Error(fail(Code::unavailable, "{} brought no backend that was not there before", path));
}

// ":1" at the end of a word: a colon followed by digits only.
std::string ordinal_of(const std::string& word) {
  const size_t colon = word.rfind(':');
  if (colon == word.npos || colon + 1 == word.size()) return "";
  return word.find_first_not_of("0123456789", colon + 1) == word.npos ? word.substr(colon) : "";
}

}  // namespace

AskedDevices asked_devices(const std::string& word) {
  const std::string ordinal = ordinal_of(word), backend = word.substr(0, word.size() - ordinal.size());
  const bool is_path = backend.ends_with(".so") || backend.find('/') != backend.npos;
  const std::string name = is_path ? loaded(backend) : backend;
  if (!ordinal.empty()) return {{{ordinal == ":0" ? name : name + ordinal, word}}, {}};
  AskedDevices asked;
  for (const auto& info : get_backends()) {
    if (info.name != name) continue;
    asked.missing = info.missing;
    for (const auto& d : info.devices)
      asked.devices.push_back({d.name, backend + d.name.substr(name.size())});
  }
  if (asked.devices.empty()) asked.devices.push_back({name, word});  // opening it reports why not
  return asked;
}

}  // namespace weft::cli
