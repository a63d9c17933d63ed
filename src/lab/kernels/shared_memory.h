#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/status.h"

// Memory that the lab and the process of a kernel both see. The lab fills and checks it while that process
// stands still.
namespace weft::lab {

/// An anonymous file, mapped. Unmapped and closed with this.
class SharedMemory {
 public:
  /// Errors: out_of_memory.
  static Result<SharedMemory> create(uint64_t bytes);
  /// Maps the file behind `descriptor`, which this then owns.
  static Result<SharedMemory> map(int descriptor);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  std::span<std::byte> bytes() const { return {data_, size_}; }
  int descriptor() const { return descriptor_; }

 private:
  SharedMemory(std::byte* data, uint64_t size, int descriptor)
      : data_(data), size_(size), descriptor_(descriptor) {}
  std::byte* data_;
  uint64_t size_;
  int descriptor_;
};

/// Where tensors lie in shared memory: each between two guard zones, at a multiple of 64 that is drawn anew.
struct Places {
  std::vector<uint64_t> at;     ///< of each tensor
  std::vector<uint64_t> sizes;  ///< in bytes
};
inline constexpr uint64_t kGuard = 4096;
/// How much memory tensors of these sizes want, wherever they are moved to.
uint64_t room_for(std::span<const uint64_t> sizes);
Places draw_places(std::span<const uint64_t> sizes, uint64_t seed);

/// Fills the guard zones with bytes that `seed` draws.
void fill_guards(std::span<std::byte> memory, const Places& places, uint64_t seed);
/// Which tensor's guard zone holds another byte than fill_guards left there; -1: none.
int64_t touched_guard(std::span<const std::byte> memory, const Places& places, uint64_t seed);

}  // namespace weft::lab
