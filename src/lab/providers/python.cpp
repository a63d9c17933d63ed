#include "lab/kernels/python.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "seam/registry.h"

// Kernels in Python: a file, or one of python/weft/lab/providers by its name. Their processes are Python's,
// and end in the same Service as those of C++: weft.lab.worker opens a kernel, and is no part of what is
// timed.
namespace weft::lab {
namespace {

namespace fs = std::filesystem;

// A file, and a function of it where the op does not name that.
struct PythonFile {
  std::string path, function;
};

PythonFile file_of(const std::string& contender) {
  const auto colon = contender.rfind(".py:");
  if (colon != std::string::npos) return {contender.substr(0, colon + 3), contender.substr(colon + 4)};
  return {contender.ends_with(".py") ? contender : "", ""};
}

std::vector<std::string> known_names() {
  std::istringstream words(WEFT_PYTHON_PROVIDERS);
  std::vector<std::string> names;
  for (std::string word; words >> word;) names.push_back(word);
  return names;
}

constexpr std::string_view kPrefix = "python.";

// "python.triton" is Python's, "triton" that of a backend where one has this name.
std::string provider_named(const std::string& contender) {
  const bool said = contender.starts_with(kPrefix);
  const std::string name = said ? contender.substr(kPrefix.size()) : contender;
  const auto names = known_names();
  if (std::ranges::find(names, name) == names.end()) return "";
  const auto backends = seam::registry().report();
  return !said && std::ranges::find(backends, name, &BackendInfo::name) != backends.end() ? "" : name;
}

bool takes(const std::string& contender) {
  return !file_of(contender).path.empty() || !provider_named(contender).empty();
}

Result<std::string> prepare(const std::string& contender, const std::string&) {
  std::string name = std::string(kPrefix) + provider_named(contender);
  if (const auto file = file_of(contender); !file.path.empty()) {
    std::error_code none;
    const auto path = fs::absolute(file.path, none);
    if (!fs::is_regular_file(path, none)) return fail(Code::unavailable, "there is no file {}", file.path);
    name = path.string() + (file.function.empty() ? "" : ":" + file.function);
  }
  WEFT_TRY(const auto reasons, reasons_of({name}));
  if (!reasons[0].empty()) return fail(Code::unavailable, "{}", reasons[0]);
  return name;
}

// Python instead of this program, with the same options.
void process(const std::string&, Process& p) {
  auto words = python_command();
  const auto options = std::ranges::find(p.command, "--worker");
  words.insert(words.end(), options, p.command.end());
  p.command = std::move(words);
  if (!p.device.empty()) p.command.insert(p.command.end(), {"--device", p.device});
  p.open_seconds = std::max(p.open_seconds, 120.0);  // it may import much, and compile
}

Result<std::unique_ptr<Kernel>> open(const std::string& name, const seam::CallPtr& call) {
  const auto in_python = this_python().open;
  if (!in_python) return fail(Code::internal, "{} is opened in a process that is no Python", name);
  return in_python(name, call);
}

std::vector<Offer> offers() {
  const auto names = known_names();
  auto reasons = reasons_of(names);
  std::vector<Offer> all;
  for (size_t i = 0; i < names.size(); ++i)
    all.push_back({names[i], reasons.ok() ? (*reasons)[i] : reasons.status().message()});
  return all;
}

}  // namespace

extern const Provider python_provider = {
    "python", "a .py file, FILE.py:FUNCTION, or a library of the list below, whose kernels Python runs",
    takes,    prepare,
    open,     offers,
    process};

}  // namespace weft::lab
