#include "base/file_to_read.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/shown.h"

namespace weft {

// A program names the file of its weights, which may be any text.
constexpr size_t kMostOfPath = 400;

Status FileToRead::failed(const char* what) const {
  const std::string path = shown(path_, kMostOfPath);
  if (errno == ENOENT || errno == ENOTDIR)
    return fail(Code::unavailable, "can't read '{}': there is no such file; check its name and folder", path);
  return fail(Code::unavailable, "can't {} '{}': {}", what, path, std::strerror(errno));
}

Result<FileToRead> FileToRead::open(const std::string& path) {
  // A pipe must not block here.
  FileToRead f(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about{};
  if (f.file_ < 0 || ::fstat(f.file_, &about) != 0) return f.failed("read");
  if (!S_ISREG(about.st_mode))
    return fail(Code::unavailable, "can't read '{}': it is {}; name a file", shown(path, kMostOfPath),
                S_ISDIR(about.st_mode) ? "a folder" : "not a regular file");
  f.size_ = static_cast<size_t>(about.st_size);
  return f;
}

FileToRead::FileToRead(FileToRead&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), size_(other.size_) {}

FileToRead::~FileToRead() {
  if (file_ >= 0) ::close(file_);
}

Result<std::vector<std::byte>> FileToRead::read() const {
  std::vector<std::byte> bytes(size_);
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n = ::read(file_, bytes.data() + have, bytes.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("read");
    if (n == 0) break;  // it was cut short meanwhile
    have += static_cast<size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

Result<SharedBytes> FileToRead::map() const {
  if (size_ == 0) return SharedBytes{};
  void* at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file_, 0);
  if (at == MAP_FAILED) return failed("map");
  std::shared_ptr<const void> owner(at,
                                    [size = size_](const void* p) { ::munmap(const_cast<void*>(p), size); });
  return SharedBytes{std::move(owner), {static_cast<const std::byte*>(at), size_}};
}

}  // namespace weft
