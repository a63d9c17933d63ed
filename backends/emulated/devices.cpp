#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "faults.hpp"

// Devices, their memory, and their faults.
namespace weft::gpu {

namespace {

constexpr int kMostDevices = 8;
constexpr size_t kAlignment = 512;

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}
int devices() {
  static const int n = static_cast<int>(setting("WEFT_EMULATED_DEVICES", 1));
  return n < kMostDevices ? n : kMostDevices;
}
size_t memory() {
  static const size_t bytes = setting("WEFT_EMULATED_MEMORY", uint64_t{1} << 32);
  return bytes;
}

struct State {
  std::array<std::atomic<bool>, kMostDevices> failed{};
  std::atomic<uint64_t> kernels = 0;
  std::mutex mutex;  // Guards what follows.
  std::string why;
  std::map<void*, std::pair<int, size_t>> given;
  std::array<size_t, kMostDevices> used{};
};
State& state() {
  static State& all = *new State;  // threads of streams outlive the plug-in's statics
  return all;
}
thread_local int current = 0;

void note_kernel(std::string_view name) {
  static std::FILE* const file = [] {
    const char* path = std::getenv("WEFT_EMULATED_KERNELS");
    return path ? std::fopen(path, "a") : nullptr;
  }();
  if (!file) return;
  const std::lock_guard lock(state().mutex);
  std::fprintf(file, "%.*s\n", static_cast<int>(name.size()), name.data());
  std::fflush(file);
}

void fail(int device, const std::string& why) {
  const std::lock_guard lock(state().mutex);
  state().why = why;
  state().failed[static_cast<size_t>(device)] = true;
}

}  // namespace

int current_device() { return current; }
bool failed(int device) { return state().failed[static_cast<size_t>(device)]; }

void run_kernel(int device, std::string_view name, const std::function<std::string()>& kernel) {
  if (failed(device)) return;
  const uint64_t number = ++state().kernels;
  note_kernel(name);
  if (number == setting("WEFT_EMULATED_FAULT", 0))
    return fail(device, "an illegal memory access was emulated");
  while (number == setting("WEFT_EMULATED_HANG", 0)) std::this_thread::sleep_for(std::chrono::hours(1));
  if (const std::string why = kernel(); !why.empty()) fail(device, why);
}
void set_error_text(const std::string& text) {
  const std::lock_guard lock(state().mutex);
  state().why = text;
}
void copy_bytes(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

const char* get_error_string(Error error) {
  switch (error) {
    case Error::success: return "no error";
    case Error::invalid_value: return "invalid value";
    case Error::out_of_memory: return "out of memory";
    case Error::not_ready: return "not ready";
    case Error::unjoined: return "a captured stream was not joined";
    case Error::peer_known: return "peer access is enabled";
    case Error::no_device: return "no such device";
    case Error::function_failed:
    case Error::fault: break;
  }
  const std::lock_guard lock(state().mutex);
  static thread_local std::string text;
  return (text = state().why).c_str();
}
Error get_last_error() { return failed(current) ? Error::fault : Error::success; }
Error driver_version(int* version) { return *version = 1000, Error::success; }
Error runtime_version(int* version) { return *version = 1000, Error::success; }
Error device_count(int* n) { return *n = devices(), Error::success; }

Error properties(Properties* p, int device) {
  if (device < 0 || device >= devices()) return Error::no_device;
  *p = {};
  std::snprintf(p->name, sizeof p->name, "a GPU emulated by a CPU");
  p->major = 8, p->multiProcessorCount = 4, p->maxThreadsPerMultiProcessor = 1024;
  p->maxThreadsPerBlock = 1024, p->warpSize = 32;
  p->totalGlobalMem = memory(), p->sharedMemPerBlock = size_t{48} << 10;
  return Error::success;
}

Error set_device(int device) {
  if (device < 0 || device >= devices()) return Error::no_device;
  current = device;
  return get_last_error();
}

Error can_access_peer(int* can, int, int other) {
  *can = other >= 0 && other < devices();
  return Error::success;
}
Error enable_peer(int, unsigned) { return Error::success; }

Error memory_info(size_t* left, size_t* all) {
  if (failed(current)) return Error::fault;
  const std::lock_guard lock(state().mutex);
  *all = memory(), *left = memory() - state().used[static_cast<size_t>(current)];
  return Error::success;
}

Error allocate(void** at, size_t bytes) {
  if (failed(current)) return Error::fault;
  const std::lock_guard lock(state().mutex);
  size_t& used = state().used[static_cast<size_t>(current)];
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  *at = bytes <= memory() - used ? std::aligned_alloc(kAlignment, bytes) : nullptr;
  if (!*at) return Error::out_of_memory;
  used += bytes;
  state().given[*at] = {current, bytes};
  return Error::success;
}

Error release(void* at) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().given.find(at);
  if (found == state().given.end()) return Error::invalid_value;
  state().used[static_cast<size_t>(found->second.first)] -= found->second.second;
  state().given.erase(found);
  std::free(at);
  return Error::success;
}

Error allocate_host(void** at, size_t bytes) {
  *at = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  return *at ? Error::success : Error::out_of_memory;
}
Error release_host(void* at) {
  std::free(at);
  return Error::success;
}

}  // namespace weft::gpu
