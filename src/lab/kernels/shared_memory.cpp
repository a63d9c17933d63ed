#include "lab/kernels/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "weft/random.h"

namespace weft::lab {
namespace {

constexpr uint64_t kStep = 64, kMoves = 64;  // a tensor lies up to 63 steps behind the end of its guard zone

uint64_t whole_steps(uint64_t bytes) { return (bytes + kStep - 1) / kStep * kStep; }

// Both guard zones of a tensor. The one behind begins at its last byte, not at the next step.
template <class Zone>
void each_zone(std::span<std::byte> memory, const Places& places, const Zone& zone) {
  for (size_t i = 0; i < places.at.size(); ++i) {
    zone(i, memory.subspan(places.at[i] - kGuard, kGuard));
    zone(i, memory.subspan(places.at[i] + places.sizes[i], kGuard));
  }
}

std::byte guard_byte(uint64_t seed, size_t tensor, size_t i) {
  return static_cast<std::byte>(random_word(seed + tensor, i / 8) >> i % 8 * 8);
}

}  // namespace

Result<SharedMemory> SharedMemory::create(uint64_t bytes) {
  const int file = ::memfd_create("weft lab", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    const int why = errno;
    if (file >= 0) ::close(file);
    return fail(Code::out_of_memory, "{} bytes of shared memory can't be had: {}", bytes, std::strerror(why));
  }
  // A kernel's process could cut it off, and the lab would end at its next look.
  (void)::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return map(file);
}

Result<SharedMemory> SharedMemory::map(int descriptor) {
  struct stat about{};
  void* data = MAP_FAILED;
  if (::fstat(descriptor, &about) == 0)
    data = ::mmap(nullptr, static_cast<size_t>(about.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
                  0);
  if (data == MAP_FAILED) {
    const int why = errno;
    ::close(descriptor);
    return fail(Code::out_of_memory, "shared memory can't be mapped: {}", std::strerror(why));
  }
  return SharedMemory(static_cast<std::byte*>(data), static_cast<uint64_t>(about.st_size), descriptor);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(other.size_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

SharedMemory::~SharedMemory() {
  if (data_) ::munmap(data_, size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

uint64_t room_for(std::span<const uint64_t> sizes) {
  uint64_t room = 0;
  for (const uint64_t bytes : sizes) room += whole_steps(bytes) + 2 * kGuard + kStep * kMoves;
  return room;
}

Places draw_places(std::span<const uint64_t> sizes, uint64_t seed) {
  Places places;
  uint64_t end = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    places.at.push_back(end + kGuard + random_word(seed, i) % kMoves * kStep);
    places.sizes.push_back(sizes[i]);
    end += whole_steps(sizes[i]) + 2 * kGuard + kStep * kMoves;
  }
  return places;
}

void fill_guards(std::span<std::byte> memory, const Places& places, uint64_t seed) {
  each_zone(memory, places, [&](size_t tensor, std::span<std::byte> zone) {
    for (size_t i = 0; i < zone.size(); ++i) zone[i] = guard_byte(seed, tensor, i);
  });
}

int64_t touched_guard(std::span<const std::byte> memory, const Places& places, uint64_t seed) {
  int64_t touched = -1;
  const std::span<std::byte> all(const_cast<std::byte*>(memory.data()), memory.size());  // only read here
  each_zone(all, places, [&](size_t tensor, std::span<std::byte> zone) {
    for (size_t i = 0; i < zone.size() && touched < 0; ++i)
      if (zone[i] != guard_byte(seed, tensor, i)) touched = static_cast<int64_t>(tensor);
  });
  return touched;
}

}  // namespace weft::lab
