#include "lab/kernels/process_facts.h"

#include <fmt/core.h>

#include <cfenv>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace weft::lab {
namespace {

// The value of a line "VmRSS:    1234 kB" of /proc/PID/status; empty: there is none.
std::string field_of(int pid, std::string_view name) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ':')
      return line.substr(line.find_first_not_of(" \t", name.size() + 1));
  return "";
}

uint64_t kilobytes_of(int pid, std::string_view name) {
  return std::strtoull(field_of(pid, name).c_str(), nullptr, 10) * 1024;
}

// Processes that run, and their parents; those that have ended and wait for theirs are left out.
std::map<int, int> parents() {
  std::map<int, int> all;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", none)) {
    const auto name = entry.path().filename().string();
    int pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    if (!field_of(pid, "State").starts_with("Z")) all[pid] = std::atoi(field_of(pid, "PPid").c_str());
  }
  return all;
}

}  // namespace

ProcessMemory memory_of(int pid) {
  const uint64_t shared = kilobytes_of(pid, "RssShmem"), resident = kilobytes_of(pid, "VmRSS"),
                 peak = kilobytes_of(pid, "VmHWM");
  return {.resident = resident - std::min(shared, resident),
          .anonymous = kilobytes_of(pid, "RssAnon"),
          .peak = peak - std::min(shared, peak)};
}

std::string processors_of(int pid) { return field_of(pid, "Cpus_allowed_list"); }

int runnable_threads(int pid) {
  int runnable = 0;
  std::error_code none;
  for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), none)) {
    std::ifstream file(thread.path() / "stat");
    std::string line;
    std::getline(file, line);
    // "1234 (a name, with any letters) R ..."
    if (const auto at = line.rfind(')'); at != std::string::npos && line.compare(at + 1, 2, " R") == 0)
      ++runnable;
  }
  return runnable;
}

std::vector<int> children_of(int pid) {
  std::vector<int> children;
  for (const auto& [child, parent] : parents())
    if (parent == pid) children.push_back(child);
  return children;
}

std::vector<int> descendants_of(int pid) {
  const auto all = parents();
  std::vector<int> found{pid};
  for (size_t i = 0; i < found.size(); ++i)
    for (const auto& [child, parent] : all)
      if (parent == found[i]) found.push_back(child);
  found.erase(found.begin());
  return found;
}

uint64_t float_mode() {
  uint64_t mode = static_cast<uint64_t>(std::fegetround());
#if defined(__x86_64__)
  mode |= uint64_t{_mm_getcsr() & ~0x3fu} << 32;  // without the flags that arithmetic raises
#elif defined(__aarch64__)
  uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  mode |= control << 32;
#endif
  return mode;
}

}  // namespace weft::lab
