#include <filesystem>

#include "base/input_file.h"
#include "base/log.h"
#include "base/output_file.h"
#include "base/thread_pool.h"
#include "seam/builtin.h"
#include "seam/registry.h"

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

uint64_t cache_get(const char* key, void* bytes, uint64_t capacity) {
  const auto folder = cache_folder();
  if (folder.empty() || !plain_name(key)) return 0;
  std::error_code absent;
  const uint64_t size = std::filesystem::file_size(folder / key, absent);
  if (absent) return 0;
  InputFile in((folder / key).string());
  const uint64_t want = std::min(size, capacity);
  return in.read({static_cast<char*>(bytes), want}) == want ? size : 0;
}

void cache_put(const char* key, const void* bytes, uint64_t n) {
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

void host_log(uint32_t level, const char* text) {
  weft::log(static_cast<LogLevel>(std::min(level, 3u)), text);
}

}  // namespace

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
