#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace weft {
namespace {

namespace fs = std::filesystem;

Status system_error(const char* what, const std::string& path) {
  return fail(Code::io, "can't {} '{}': {}", what, path, std::strerror(errno));
}

// The end of a chain of symbolic links, which need not exist. The system follows this many.
Result<std::string> behind_links(const std::string& path) {
  fs::path at = path;
  for (int links = 0; links < 40; ++links) {
    std::error_code no_link;
    const fs::path next = fs::read_symlink(at, no_link);
    if (no_link == std::errc::invalid_argument || no_link == std::errc::no_such_file_or_directory)
      return at.string();
    if (no_link) return fail(Code::io, "can't write '{}': {}", path, no_link.message());
    at = at.parent_path() / next;
  }
  errno = ELOOP;
  return system_error("write", path);
}

// `weft run --out /dev/stdout > file`: replacing the file would lose everything printed after this.
bool is_standard_output(const struct stat& about) {
  struct stat output{};
  return ::fstat(STDOUT_FILENO, &output) == 0 && output.st_dev == about.st_dev &&
         output.st_ino == about.st_ino;
}

}  // namespace

Status sync_folder(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return {};  // a folder may be writable but not readable
  const bool synced = ::fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
  Status status = synced ? Status() : system_error("bring to the disk the folder", folder);
  ::close(file);
  return status;
}

Result<OutputFile> OutputFile::open(const std::string& path) {
  OutputFile out(path);
  struct stat about{};
  const bool there = ::stat(path.c_str(), &about) == 0;
  if (!there && errno != ENOENT) return system_error("write", path);
  if (there && S_ISDIR(about.st_mode)) return fail(Code::io, "can't write '{}': it is a folder", path);
  if (there && is_standard_output(about)) {
    out.file_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  } else if (there && !S_ISREG(about.st_mode)) {
    out.file_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    if (there && ::access(path.c_str(), W_OK) != 0) return system_error("write", path);
    WEFT_TRY(out.target_, behind_links(path));
    WEFT_CHECK(out.open_beside(there ? &about.st_mode : nullptr));
  }
  if (out.file_ < 0) return system_error("write", path);
  return out;
}

// In the folder of the target, since a rename can't cross file systems.
Status OutputFile::open_beside(const mode_t* mode) {
  static std::atomic<uint64_t> next = 0;
  do {  // a killed process with the same number may have left this name
    beside_ = fmt::format("{}.tmp.{}.{}", target_, ::getpid(), next++);
    file_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode ? 0600 : 0666);
  } while (file_ < 0 && errno == EEXIST);
  const std::string folder = fs::path(target_).parent_path().string();
  if (file_ < 0 && errno == ENOENT && !folder.empty()) {
    beside_.clear();
    return fail(Code::io, "can't write '{}': there is no folder '{}'; make it, or name another one", path_,
                folder);
  }
  if (file_ < 0) return system_error("create", std::exchange(beside_, {}));
  if (mode && ::fchmod(file_, *mode & 07777) != 0) return system_error("keep the permissions of", target_);
  return {};
}

void remove_unfinished(const std::string& path) {
  auto target = behind_links(path);
  if (!target.ok()) return;
  const fs::path file = *target, folder = file.has_parent_path() ? file.parent_path() : ".";
  const auto unfinished = file.filename().string() + ".tmp.";
  std::error_code ec;
  for (auto it = fs::directory_iterator(folder, ec); !ec && it != fs::end(it); it.increment(ec))
    if (it->path().filename().string().starts_with(unfinished)) fs::remove(it->path(), ec);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      beside_(std::exchange(other.beside_, {})),
      file_(std::exchange(other.file_, -1)),
      gathered_(std::move(other.gathered_)) {}

OutputFile::~OutputFile() {
  if (file_ >= 0) ::close(file_);
  if (!beside_.empty()) ::unlink(beside_.c_str());
}

Status OutputFile::write(std::span<const std::byte> bytes) {
  constexpr size_t kGathered = 1 << 20;
  if (gathered_.size() + bytes.size() > kGathered) {
    WEFT_CHECK(write_now(gathered_));
    gathered_.clear();
  }
  if (bytes.size() > kGathered) return write_now(bytes);
  gathered_.insert(gathered_.end(), bytes.begin(), bytes.end());
  return {};
}

Status OutputFile::write_now(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("write", path_);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

bool is_standard_output(const std::string& path) {
  struct stat about{};
  return ::stat(path.c_str(), &about) == 0 && is_standard_output(about);
}

Status OutputFile::commit() {
  WEFT_CHECK(write_now(gathered_));
  if (!beside_.empty() && ::fsync(file_) != 0) return system_error("write", path_);
  // Write errors may be reported only now.
  if (::close(std::exchange(file_, -1)) != 0) return system_error("write", path_);
  if (beside_.empty()) return {};
  if (::rename(beside_.c_str(), target_.c_str()) != 0) return system_error("replace", path_);
  beside_.clear();
  const auto folder = fs::path(target_).parent_path().string();
  return sync_folder(folder.empty() ? "." : folder);
}

}  // namespace weft
