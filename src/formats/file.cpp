#include "formats/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

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

Status write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("write", path);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return ::fsync(fd) == 0 ? Status() : system_error("write", path);
}

// The name itself lives in the folder, which reaches the disk on its own.
void sync_folder(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  const Descriptor d{::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (d.fd >= 0) ::fsync(d.fd);
}

}  // namespace

Result<std::vector<std::byte>> read_file(const std::string& path) {
  const Descriptor d{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat about{};
  if (d.fd < 0 || ::fstat(d.fd, &about) != 0)
    return fail(Code::unavailable, "can't read {}: {}", path, std::strerror(errno));
  if (!S_ISREG(about.st_mode)) return fail(Code::unavailable, "can't read {}: it is not a file", path);
  std::vector<std::byte> bytes(static_cast<size_t>(about.st_size));
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

Status write_file_atomically(const std::string& path, std::span<const std::byte> bytes) {
  // The process number keeps two writers apart; the last to finish wins, whole.
  const std::string beside = fmt::format("{}.{}.tmp", path, ::getpid());
  Status status;
  {
    const Descriptor d{::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    if (d.fd < 0) return system_error("write", beside);
    status = write_all(d.fd, bytes, beside);
  }
  if (status.ok() && ::rename(beside.c_str(), path.c_str()) != 0) status = system_error("replace", path);
  if (!status.ok()) {
    ::unlink(beside.c_str());
    return status;
  }
  sync_folder(path);
  return {};
}

Status write_file_atomically(const std::string& path, std::string_view text) {
  return write_file_atomically(path, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace weft::formats
