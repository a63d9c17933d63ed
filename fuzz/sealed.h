#pragma once
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

namespace weft::fuzz {

// Offsets in the container (src/program/container.h): header, section table, blob table.
inline constexpr size_t kHeader = 64, kEntry = 48, kBlob = 32;

/// A file whose hashes are mended. They find accidents; without this the fuzzer would get no further than
/// them.
class Sealed {
 public:
  explicit Sealed(std::string_view file) : file_(file) {
    if (file_.size() < kHeader) return;
    const size_t sections = std::min<size_t>(u32(12), (file_.size() - kHeader) / kEntry);
    size_t table = 0, table_size = 0, blobs = 0;
    for (size_t i = 0; i < sections; ++i) {
      const size_t entry = kHeader + i * kEntry;
      const std::string name(file_.c_str() + entry, strnlen(file_.c_str() + entry, 16));
      if (name == "blob table") table = u64(entry + 16), table_size = u64(entry + 24);
      if (name == "blobs") blobs = u64(entry + 16);
    }
    for (size_t at = table; within(at, kBlob) && at - table < table_size; at += kBlob)
      hash(at + 16, blobs + u64(at), u64(at + 8));
    for (size_t i = 0; i < sections; ++i) {
      const size_t entry = kHeader + i * kEntry;
      if (std::strncmp(file_.c_str() + entry, "blobs", 16) != 0)
        hash(entry + 32, u64(entry + 16), u64(entry + 24));
    }
    const uint64_t size = file_.size();
    std::memcpy(file_.data() + 24, &size, sizeof size);
    hash(32, kHeader, sections * kEntry);
    hash(48, 0, 48);
  }
  const std::string& bytes() const { return file_; }

 private:
  bool within(uint64_t at, uint64_t n) const { return at <= file_.size() && n <= file_.size() - at; }
  template <class T>
  T number(size_t at) const {
    T v;
    std::memcpy(&v, file_.data() + at, sizeof v);
    return v;
  }
  uint32_t u32(size_t at) const { return number<uint32_t>(at); }
  uint64_t u64(size_t at) const { return number<uint64_t>(at); }
  void hash(size_t to, uint64_t from, uint64_t n) {
    if (!within(from, n)) return;
    const XXH128_hash_t h = XXH3_128bits(file_.data() + from, n);
    std::memcpy(file_.data() + to, &h.low64, 8);
    std::memcpy(file_.data() + to + 8, &h.high64, 8);
  }
  std::string file_;
};

}  // namespace weft::fuzz
