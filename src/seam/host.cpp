#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/input_file.h"
#include "base/log.h"
#include "base/output_file.h"
#include "base/thread_pool.h"
#include "seam/artefacts.h"
#include "seam/builtin.h"
#include "seam/registry.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

// What the host does for backends.
namespace weft::seam {
namespace {

// Artefacts are compiled text and such: losing the folder costs time, never a result.
std::filesystem::path cache_folder() {
  if (const char* own = std::getenv("WEFT_CACHE_DIR")) return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME")) return std::filesystem::path(xdg) / "weft";
  if (const char* home = std::getenv("HOME")) return std::filesystem::path(home) / ".cache" / "weft";
  return {};
}

bool plain_name(std::string_view key) {
  return !key.empty() && key.size() < 200 && key[0] != '.' && key.find('/') == key.npos;
}

}  // namespace

uint64_t disk_get(const char* key, void* bytes, uint64_t capacity) {
  const auto folder = cache_folder();
  if (folder.empty() || !plain_name(key)) return 0;
  std::error_code absent;
  const uint64_t size = std::filesystem::file_size(folder / key, absent);
  if (absent) return 0;
  InputFile in((folder / key).string());
  const uint64_t want = std::min(size, capacity);
  return in.read({static_cast<char*>(bytes), want}) == want ? size : 0;
}
void disk_put(const char* key, const void* bytes, uint64_t n) {
  const auto folder = cache_folder();
  if (folder.empty() || !plain_name(key)) return;
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const auto put = [&]() -> Status {
    WEFT_TRY(auto file, OutputFile::open((folder / key).string()));
    WEFT_CHECK(file.write({static_cast<const std::byte*>(bytes), n}));
    return file.commit();
  };
  (void)put();  // a cache that can't be written is a cache that misses
}

namespace {

// What programs bring along, and what is noted for one.
struct Carried {
  std::mutex mutex;
  std::multimap<std::string, std::span<const std::byte>, std::less<>> offered;
  bool noting = false;
  std::map<std::string, std::string> noted;
  size_t got = 0;
};
Carried& carried() {
  static Carried all;
  return all;
}
void note(const char* key, const void* bytes, uint64_t n, bool got) {
  Carried& c = carried();
  const std::lock_guard lock(c.mutex);
  if (!c.noting) return;
  c.noted.insert_or_assign(key, std::string(static_cast<const char*>(bytes), n));
  c.got += got;
}

uint64_t cache_get(const char* key, void* bytes, uint64_t capacity) {
  uint64_t size = 0;
  {
    Carried& c = carried();
    const std::lock_guard lock(c.mutex);
    if (const auto at = c.offered.find(std::string_view(key)); at != c.offered.end()) {
      size = at->second.size();
      if (capacity > 0) std::memcpy(bytes, at->second.data(), std::min(size, capacity));
    }
  }
  if (size == 0) size = disk_get(key, bytes, capacity);
  if (size > 0 && size <= capacity) note(key, bytes, size, true);
  return size;
}
void cache_put(const char* key, const void* bytes, uint64_t n) {
  note(key, bytes, n, false);
  disk_put(key, bytes, n);
}

void host_log(uint32_t level, const char* text) {
  weft::log(static_cast<LogLevel>(std::min(level, 3u)), text);
}

}  // namespace

OfferedArtefacts::OfferedArtefacts(std::vector<Artefact> artefacts) : artefacts_(std::move(artefacts)) {
  const std::lock_guard lock(carried().mutex);
  for (const Artefact& a : artefacts_) carried().offered.emplace(a.key, a.bytes);
}
OfferedArtefacts::~OfferedArtefacts() {
  auto& offered = carried().offered;
  const std::lock_guard lock(carried().mutex);
  for (const Artefact& a : artefacts_)
    std::erase_if(offered,
                  [&](const auto& o) { return o.first == a.key && o.second.data() == a.bytes.data(); });
}

NotedArtefacts::NotedArtefacts() {
  const std::lock_guard lock(carried().mutex);
  carried().noting = true, carried().got = 0;
  carried().noted.clear();
}
NotedArtefacts::~NotedArtefacts() {
  const std::lock_guard lock(carried().mutex);
  carried().noting = false;
}
std::map<std::string, std::string> NotedArtefacts::all() const {
  const std::lock_guard lock(carried().mutex);
  return carried().noted;
}
size_t NotedArtefacts::got() const {
  const std::lock_guard lock(carried().mutex);
  return carried().got;
}

std::string device_words(const Device& device) {
  return fmt::format("{}: {}", device.backend().name, device.capability().label);
}
std::string capability_hash(const Device& device) {
  const weft_capability& c = device.capability();
  const char* version = device.backend().version;
  const std::string all = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{:x} {} {} {}", device.backend().name,
                                      version ? version : "", c.kind, c.label, c.dialect, c.numerics,
                                      c.dtypes, c.subgroup, c.group_items, c.shared_bytes);
  const XXH128_hash_t h = XXH3_128bits(all.data(), all.size());
  return fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

const weft_host& host() {
  static const weft_host h{.size = sizeof(weft_host),
                           .abi_min = WEFT_ABI_MIN,
                           .abi_max = WEFT_ABI,
                           .reserved = 0,
                           .log = host_log,
                           .parallel_for = weft::parallel_for,
                           .cache_get = cache_get,
                           .cache_put = cache_put,
                           .render = builtin_render()};
  return h;
}

}  // namespace weft::seam
