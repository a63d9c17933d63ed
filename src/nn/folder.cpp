#include "nn/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/output_file.h"
#include "weft/checkpoint.h"

namespace weft::nn {

void make_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ec, not_there;
  std::vector<fs::path> above;  // parents of everything created here
  for (auto at = fs::absolute(folder, ec); !ec && !fs::exists(at, not_there) && at.has_relative_path();
       at = at.parent_path())
    above.push_back(at.parent_path());
  if (!ec) fs::create_directories(folder, ec);
  for (const auto& at : above)
    if (!ec) raise_if(sync_folder(at.string()));
  if (ec) throw Error(fail(Code::io, "can't make the folder {}: {}", folder, ec.message()));
}

FolderLock::FolderLock(const std::string& folder) {
  make_folder(folder);
  fd_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) == 0) {
    remove_unfinished(checkpoint_path(folder));
    return;
  }
  const int why = errno;
  if (fd_ >= 0) ::close(fd_);
  throw Error(why == EWOULDBLOCK
                  ? fail(Code::io,
                         "{}: another training run writes here; wait for it, or name another folder", folder)
                  : fail(Code::io, "can't keep the folder {}: {}", folder, std::strerror(why)));
}
FolderLock::~FolderLock() { ::close(fd_); }

}  // namespace weft::nn
