#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace weft::seam {

class Device;

/// Rare fields, kept apart so that a Buffer fits into one cache line.
struct Special {
  std::byte* address = nullptr;  // of pinned memory, for the host
  bool imported = false;         // foreign memory
  bool has_handle = true;        // one that the backend made
  uint64_t alignment = 64;       // of imported memory, in bytes, as far as it is known; at most 64
  std::function<void()> end;     // runs the deleter of imported memory
};

/// Memory of a device, counted. Made by Device::allocate; when the last reference goes it returns to its
/// device's pool, where the next allocation of its size class finds it.
struct Buffer {
  std::atomic<uint32_t> references{1};
  uint32_t size_class = 0;
  Device* device = nullptr;
  void* handle = nullptr;            // opaque unless the device has host memory
  uint64_t bytes = 0;                // at least what was requested
  uint64_t asked = 0;                // by whom the pool served; 0: it did not
  std::atomic<uint32_t> version{0};  // counts updates in place, so that a saved tensor can tell
  std::atomic<bool> viewed{false};   // has a view: may not be overwritten
  std::atomic<uint8_t> holders{0};   // compiled programs that use it: may not be overwritten either
  Buffer* next = nullptr;            // in a pool's free list
  std::unique_ptr<Special> special;  // of pinned and of imported memory

  std::byte* address() const { return special ? special->address : nullptr; }
  uint64_t alignment() const { return special ? special->alignment : 64; }
};
static_assert(sizeof(Buffer) <= 64);

void recycle(Buffer* buffer);

class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(Buffer* adopted) : b_(adopted) {}
  BufferRef(const BufferRef& o) : b_(o.b_) {
    if (b_) b_->references.fetch_add(1, std::memory_order_relaxed);
  }
  BufferRef(BufferRef&& o) noexcept : b_(std::exchange(o.b_, nullptr)) {}
  BufferRef& operator=(BufferRef o) noexcept {
    std::swap(b_, o.b_);
    return *this;
  }
  ~BufferRef() {
    // The only owner needs no locked instruction: nobody else can hold or get a reference.
    if (b_ && (b_->references.load(std::memory_order_acquire) == 1 ||
               b_->references.fetch_sub(1, std::memory_order_acq_rel) == 1))
      recycle(b_);
  }
  Buffer* get() const { return b_; }
  Buffer* operator->() const { return b_; }
  explicit operator bool() const { return b_ != nullptr; }

 private:
  Buffer* b_ = nullptr;
};

}  // namespace weft::seam
