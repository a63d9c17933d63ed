#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "seam/device.h"

// What backends compile, and keep in the host's cache by keys of their own (weft_host in weft/backend.h):
// taken along, for machines that have not compiled it.
namespace weft::seam {

/// The files of the cache folder, by name: what weft_host's functions of the cache do, where no program
/// brings anything along.
uint64_t disk_get(const char* key, void* bytes, uint64_t capacity);
void disk_put(const char* key, const void* bytes, uint64_t n);

struct Artefact {
  std::string key;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  ///< of the bytes
};

/// While it lives, backends get these from the host's cache, where the disk has nothing else to say.
class OfferedArtefacts {
 public:
  explicit OfferedArtefacts(std::vector<Artefact> artefacts);
  ~OfferedArtefacts();
  OfferedArtefacts(const OfferedArtefacts&) = delete;

 private:
  std::vector<Artefact> artefacts_;
};

/// While it lives, what backends put into the host's cache and get from it is noted. One at a time.
class NotedArtefacts {
 public:
  NotedArtefacts();
  ~NotedArtefacts();
  NotedArtefacts(const NotedArtefacts&) = delete;
  /// By their keys; and how many of them were got, not put.
  std::map<std::string, std::string> all() const;
  size_t got() const;
};

/// Of what a device says of itself and of its backend's version: equal where artefacts may be of use.
std::string capability_hash(const Device& device);
/// The device in words: "opencl: cpu-haswell".
std::string device_words(const Device& device);

}  // namespace weft::seam
