#include "formats/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/output_file.h"

namespace weft::formats {
namespace {

/// Closes a file descriptor when it goes.
struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

Status system_error(const char* what, const std::string& path) {
  return fail(Code::io, "can't {} {}: {}", what, path, std::strerror(errno));
}

// A regular file, and its size.
Result<size_t> open_file(const std::string& path, Descriptor& d) {
  d.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about{};
  if (d.fd < 0 || ::fstat(d.fd, &about) != 0)
    return fail(Code::unavailable, "can't read {}: {}", path, std::strerror(errno));
  if (!S_ISREG(about.st_mode)) return fail(Code::unavailable, "can't read {}: it is not a file", path);
  return static_cast<size_t>(about.st_size);
}

}  // namespace

bool is_missing(const std::string& path) {
  struct stat about{};
  return ::stat(path.c_str(), &about) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

Result<std::vector<std::byte>> read_file(const std::string& path) {
  Descriptor d;
  WEFT_TRY(const size_t size, open_file(path, d));
  std::vector<std::byte> bytes(size);
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n = ::read(d.fd, bytes.data() + have, bytes.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("read", path);
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

Result<SharedBytes> map_file(const std::string& path) {
  Descriptor d;
  WEFT_TRY(const size_t size, open_file(path, d));
  if (size == 0) return SharedBytes{};
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, d.fd, 0);
  if (at == MAP_FAILED) return system_error("map", path);
  return SharedBytes{std::shared_ptr<const void>(at, [size](void* p) { ::munmap(p, size); }),
                     {static_cast<const std::byte*>(at), size}};
}

void release_pages(std::span<const std::byte> mapped) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(mapped.data()) / page * page,
             end = reinterpret_cast<uintptr_t>(mapped.data()) + mapped.size();
  // A hint: without it the pages stay until the file is unmapped.
  if (end > begin) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

Status write_file(const std::string& path, std::span<const std::byte> bytes) {
  WEFT_TRY(auto file, OutputFile::open(path));
  WEFT_CHECK(file.write(bytes));
  return file.commit();
}

Status write_file(const std::string& path, std::string_view text) {
  return write_file(path, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace weft::formats
