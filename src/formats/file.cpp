#include "formats/file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/output_file.h"

namespace weft::formats {

bool is_missing(const std::string& path) {
  struct stat about{};
  return ::stat(path.c_str(), &about) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

Result<std::vector<std::byte>> read_file(const std::string& path) {
  WEFT_TRY(const auto file, FileToRead::open(path));
  return file.read();
}

Result<SharedBytes> map_file(const std::string& path) {
  WEFT_TRY(const auto file, FileToRead::open(path));
  return file.map();
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
