#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "seam/uses.h"

namespace weft::seam {

struct PreparedKernel;

/// Kernel records of one provider, for one device: those of a higher rank first.
struct KernelSource {
  std::string provider;
  std::vector<const weft_kernel*> kernels;
  std::string contents;  ///< hash of their code: measurements of other code are out of date
};

struct ThreadPool;

/// Peak of a device's memory since begin_peak(), in bytes.
struct MemoryUse {
  uint64_t taken = 0;  ///< from the backend, by all threads: in use or pooled
  uint64_t asked = 0;  ///< by this thread: in use
};

/// Memory and queues of one backend's device, with the kernels that serve it.
///
/// A provider's device is a view of the one that it serves, its home: a name and kernels of its own, and the
/// home's memory and queues. Buffers belong to the home, so tensors move between views without a copy.
class Device {
 public:
  Device(const weft_backend& backend, weft_device device, const weft_capability& capability, uint32_t index);
  /// A view of `home`, which outlives it.
  Device(Device& home, std::string name, uint32_t index);
  ~Device();
  /// Opens the queue of eager work; before anything else.
  Status start();
  Device(const Device&) = delete;

  const std::string& name() const { return name_; }  ///< "reference", "opencl:1"
  const weft_backend& backend() const { return backend_; }
  weft_device c() const { return device_; }
  const weft_capability& capability() const { return capability_; }
  bool ordered() const { return capability_.queue_kind == WEFT_QUEUE_ORDERED; }
  bool host_memory() const { return capability_.host_memory != 0; }
  uint32_t index() const { return index_; }
  DLDevice dl() const { return dl_; }

  std::vector<KernelSource> sources;
  /// Called when the device closes, before its backend closes it.
  std::vector<std::function<void()>> at_close;

  /// The device whose memory and queues these are: this one, unless it is a view.
  Device& home() const { return *home_; }
  bool shares_memory(const Device& other) const { return home_ == other.home_; }

  /// From the pool where it has a buffer of the size class. Reuse is safe because every user of the pool
  /// enqueues on eager_queue(), in order. Never null on success, also for 0 bytes.
  Result<BufferRef> allocate(uint64_t bytes);
  /// Straight from the backend, for arenas with a queue of their own; `owner` frees it after its queue has
  /// drained.
  Result<BufferRef> allocate_unpooled(uint64_t bytes);
  /// Pinned host memory, at Buffer::address: copies to and from this device run asynchronously. Where the
  /// backend has none, it is plain memory, and copies wait.
  Result<BufferRef> allocate_pinned(uint64_t bytes);
  /// Imports foreign memory, `bytes` bytes from t.data + t.byte_offset on, as a buffer of this device. `end`
  /// is called once, with no lock held, after the last use; where this fails it is not called.
  Result<BufferRef> import_memory(const DLTensor& t, uint64_t bytes, std::function<void()> end);
  Result<std::unique_ptr<Queue>> open_queue();
  /// A queue on top of one of the vendor's, which stays open when this one is closed.
  Result<std::unique_ptr<Queue>> import_queue(void* native);
  /// The vendor's object of this name, as weft_backend::native gives it.
  Result<void*> native(const Queue* queue, const char* name);

  /// Two pieces of pinned memory for transfers to other devices; kept until trim(). Under staging_mutex().
  Result<const BufferRef*> staging(uint64_t bytes);
  std::mutex& staging_mutex() { return home_->staging_mutex_; }

  /// The queue of all eager work on this device. Hold `eager_mutex` while enqueuing on an ordered device.
  Queue& eager_queue() { return *home_->eager_queue_; }
  std::mutex& eager_mutex() { return home_->eager_mutex_; }

  /// Orders work enqueued on `queue` from now on after the buffer's uses by other queues.
  Status order(Queue& queue, const Buffer& buffer) {
    return home_->uses_.none() ? Status() : home_->uses_.order(queue, &queue == &eager_queue(), buffer);
  }
  /// Notes that `queue`, which is not the eager one, uses the buffer up to this point.
  void used(const Buffer& buffer, Queue& queue, uint64_t point) {
    if (ordered()) home_->uses_.add(buffer, queue, point);
  }

  /// Destroys a prepared kernel once every queue that may still need it has drained.
  void retire(PreparedKernel* plan);

  /// Returns the pooled memory of all threads to the backend.
  void trim();
  uint64_t live_bytes() const { return home_->live_bytes_.load(std::memory_order_relaxed); }
  /// Starts a measurement and returns the current use; peak() returns the maximum of each since then.
  MemoryUse begin_peak();
  MemoryUse peak();

 private:
  friend void recycle(Buffer* buffer);
  friend struct ThreadPools;
  friend class Queue;
  Result<BufferRef> taken(BufferRef buffer);
  Result<BufferRef> allocate_fresh(uint64_t bytes, uint32_t size_class);
  Result<BufferRef> allocate_or_trim(uint64_t bytes, uint32_t size_class);
  ThreadPool& this_threads_pool();
  ThreadPool& first_pool();
  void adopt_pool(ThreadPool& pool);
  void forget_pools();
  void make_room(ThreadPool& pool, uint32_t k, uint64_t bytes);
  void free_now(Buffer* buffer);
  void free_after_use(Buffer* buffer);
  void free_special(Buffer* buffer);
  void enter(Queue& queue);
  void leave(Queue& queue);
  /// Destroys retired kernels that waited for this queue alone.
  void passed(const Queue& queue);

  Device* const home_;
  const weft_backend& backend_;
  weft_device device_;
  weft_capability capability_;
  uint32_t index_;
  DLDevice dl_;
  std::string name_;
  std::unique_ptr<Queue> eager_queue_;
  std::mutex eager_mutex_, retired_mutex_, pools_mutex_, staging_mutex_;
  // Of an ordered device: its queues; retired kernels; and those that wait for some queues.
  struct Retired {
    std::vector<PreparedKernel*> plans;
    std::vector<const Queue*> wait_for;
  };
  std::vector<Queue*> queues_;
  std::vector<PreparedKernel*> retired_;
  std::vector<Retired> waiting_;
  Uses uses_;
  BufferRef staging_[2];
  std::vector<ThreadPool*> pools_;  // of the threads that use this device
  Buffer* orphans_ = nullptr;       // free buffers of threads that have ended
  std::atomic<uint64_t> live_bytes_{0}, peak_bytes_{0};
};

inline constexpr uint32_t kMaxDevices = 256;
inline constexpr uint32_t kUnpooled = UINT32_MAX;

}  // namespace weft::seam
