#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "program/container.h"
#include "program/plan.h"

namespace weft::program {
namespace {

Status system_error(std::string_view what, const std::string& path) {
  return fail(Code::io, "can't {} '{}': {}", what, path, std::strerror(errno));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  /// False when the system reports, only now, that something written was lost.
  bool close() {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 || ::close(fd) == 0;
  }

 private:
  int fd_;
};

/// A file that is removed unless it was renamed to its place.
class TempFile {
 public:
  /// In the folder of `path`, since a rename can't leave a file system.
  explicit TempFile(const std::string& path)
      : name_(fmt::format("{}.tmp.{}.{}", path, ::getpid(), next_++)),
        file_(::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)),
        exists_(file_.get() >= 0) {}
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  ~TempFile() {
    if (exists_) ::unlink(name_.c_str());
  }

  bool exists() const { return exists_; }
  const std::string& name() const { return name_; }

  Status write(const void* data, uint64_t n) {
    const auto* from = static_cast<const char*>(data);
    while (n > 0) {
      const ssize_t done = ::write(file_.get(), from, std::min<uint64_t>(n, 1 << 30));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return system_error("write", name_);
      from += done, n -= static_cast<uint64_t>(done);
    }
    return {};
  }
  Status move_to(const std::string& path) {
    if (::fsync(file_.get()) != 0 || !file_.close()) return system_error("write", name_);
    if (::rename(name_.c_str(), path.c_str()) != 0) return system_error("replace", path);
    exists_ = false;
    return {};
  }

 private:
  static inline std::atomic<uint64_t> next_ = 0;
  std::string name_;
  Descriptor file_;
  bool exists_;
};

/// The rename itself lives in the folder; without this a power cut may undo it. Some file systems refuse: no
/// harm.
void sync_folder(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Descriptor d(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (d.get() >= 0) (void)::fsync(d.get());
}

/// The whole file, read-only, private to this process; the mapping outlives the file's name.
Result<Blob> map_file(const std::string& path) {
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe must not block here
  if (file.get() < 0) return system_error("open", path);
  struct stat about{};
  if (::fstat(file.get(), &about) != 0) return system_error("read", path);
  if (!S_ISREG(about.st_mode)) return fail(Code::io, "can't read '{}': not a regular file", path);
  const auto size = static_cast<size_t>(about.st_size);
  if (size == 0) return Blob{};
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (at == MAP_FAILED) return system_error("map", path);
  std::shared_ptr<const void> owner(at, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  return Blob{static_cast<const std::byte*>(at), size, std::move(owner)};
}

}  // namespace

Blob Blob::copy_of(const void* bytes, uint64_t n) {
  constexpr std::align_val_t kAlign{64};
  std::shared_ptr<void> memory(::operator new(n, kAlign), [](void* p) { ::operator delete(p, kAlign); });
  if (n > 0) std::memcpy(memory.get(), bytes, n);
  return {static_cast<const std::byte*>(memory.get()), n, memory};
}

Status write_file(const CompiledProgram& program, const std::string& path) {
  WEFT_CHECK(verify(program).at("program not written"));
  const std::string head = container_head(write_plan(program), write_origin(program), program.blobs);
  TempFile file(path);
  if (!file.exists()) return system_error("create", file.name());
  WEFT_CHECK(file.write(head.data(), head.size()));
  constexpr std::array<char, 64> kZeros{};
  for (size_t i = 0; i < program.blobs.size(); ++i) {
    WEFT_CHECK(file.write(program.blobs[i].data, program.blobs[i].size));
    WEFT_CHECK(file.write(kZeros.data(), blob_padding(program.blobs, i)));
  }
  WEFT_CHECK(file.move_to(path));
  sync_folder(path);
  return {};
}

Result<CompiledProgram> read_file(const std::string& path) {
  WEFT_TRY(Blob bytes, map_file(path));
  auto program = deserialize(std::move(bytes));
  if (!program.ok()) return program.take_status().at(path);
  return program;
}

}  // namespace weft::program
