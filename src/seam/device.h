#pragma once
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "seam/buffer.h"
#include "seam/call.h"
#include "weft/status.h"

namespace weft::seam {

struct Plan;

/// Turns a weft_code and its text into a Status.
class CError {
 public:
  CError() {}  // leaves the text alone: this stands on the path of every launch
  /// For the next call: without a text, whatever the last one wrote.
  weft_error* out() {
    error_.size = sizeof(weft_error);
    error_.text[0] = 0;
    return &error_;
  }
  /// What a backend wrote, which may be nothing, or a text without an end.
  WEFT_COLD std::string text() const {
    return std::string(error_.text, strnlen(error_.text, sizeof error_.text));
  }
  Status status(weft_code code) const {
    if (code == WEFT_OK) return {};
    return Status(static_cast<Code>(code), error_.text[0] ? text() : "it gave no reason");
  }

 private:
  weft_error error_;
};

/// A stream of work on a device. One thread at a time; a second one is an error, not a race.
class Queue {
 public:
  /// While it lives, this thread has the queue; `status` is an error where another thread has it.
  class Turn {
   public:
    explicit Turn(Queue& queue)
        : queue_(queue), mine_(!queue.busy_.exchange(true, std::memory_order_acquire)) {}
    ~Turn() {
      if (mine_) queue_.busy_.store(false, std::memory_order_release);
    }
    Turn(const Turn&) = delete;
    Status status() const;

   private:
    Queue& queue_;
    bool mine_;
  };

  Queue(Device& device, weft_queue queue);
  ~Queue();
  Queue(const Queue&) = delete;

  weft_queue c() const { return queue_; }
  Device& device() const { return device_; }
  /// Waits for everything enqueued; an error that the device met since the last call comes out here.
  Status synchronize();
  /// Waits as synchronize does, for who frees memory and has no use for an error: it stays for the next
  /// synchronize.
  void pass();
  Status copy_in(const Buffer& to, uint64_t offset, const void* from, uint64_t bytes);
  Status copy_out(void* to, const Buffer& from, uint64_t offset, uint64_t bytes);
  Status copy(const Buffer& to, uint64_t to_offset, const Buffer& from, uint64_t from_offset, uint64_t bytes);

  /// A launch is in it that may not have passed.
  void launched() { launches_.store(true, std::memory_order_relaxed); }
  bool has_launches() const { return launches_.load(std::memory_order_relaxed); }

 private:
  Status enqueue(const weft_copy& copy);
  Status wait();

  Device& device_;
  weft_queue queue_;
  std::atomic<bool> busy_{false}, launches_{false};
  Status kept_;  // an error that pass() met
};

/// Kernel records of one provider, for one device.
struct KernelSource {
  std::string provider;
  std::vector<const weft_kernel*> kernels;
};

struct ThreadPool;

/// Bytes that a device's memory had at most since begin_peak().
struct MemoryUse {
  uint64_t taken = 0;  ///< from the backend, by all threads: in use, or kept for later
  uint64_t asked = 0;  ///< by this thread, for what is in use
};

/// Memory and queues of one backend's device, with the kernels that serve it.
class Device {
 public:
  Device(const weft_backend& backend, weft_device device, const weft_capability& capability, uint32_t index);
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
  DLDevice dl() const {
    return {host_memory() ? kDLCPU : kDLExtDev, static_cast<int32_t>(capability_.ordinal)};
  }

  std::vector<KernelSource> sources;

  /// From the pool where it has a buffer of the size class. Reuse is safe because every user of the pool
  /// enqueues on eager_queue(), in order. Never null on success, also for 0 bytes.
  Result<BufferRef> allocate(uint64_t bytes);
  /// Straight from the backend, for arenas with a queue of their own; `owner` frees it after its queue has
  /// passed.
  Result<BufferRef> allocate_unpooled(uint64_t bytes);
  Result<std::unique_ptr<Queue>> open_queue();

  /// The queue of all eager work on this device. Hold `eager_mutex` while enqueuing on an ordered device.
  Queue& eager_queue() { return *eager_queue_; }
  std::mutex& eager_mutex() { return eager_mutex_; }

  /// Ends a plan, once each queue that may still need it has been waited for.
  void retire(Plan* plan);

  /// Gives pooled memory of this thread and of ended threads back to the backend.
  void trim();
  uint64_t live_bytes() const { return live_bytes_.load(std::memory_order_relaxed); }
  /// Begins to watch: what there is now. peak() then gives the most of each since.
  MemoryUse begin_peak();
  MemoryUse peak() const;

 private:
  friend void recycle(Buffer* buffer);
  friend struct ThreadPools;
  friend class Queue;
  Result<BufferRef> allocate_fresh(uint64_t bytes, uint32_t size_class);
  void make_room(ThreadPool& pool, uint32_t k, uint64_t bytes);
  void free_now(Buffer* buffer);
  void enter(Queue& queue);
  void leave(Queue& queue);
  /// Ends the plans that waited for this queue alone.
  void passed(const Queue& queue);

  const weft_backend& backend_;
  weft_device device_;
  weft_capability capability_;
  uint32_t index_;
  std::string name_;
  std::unique_ptr<Queue> eager_queue_;
  std::mutex eager_mutex_, retired_mutex_, orphan_mutex_;
  // Of an ordered device: its queues; plans that were retired; and those that wait for some queues by now.
  struct Retired {
    std::vector<Plan*> plans;
    std::vector<const Queue*> wait_for;
  };
  std::vector<Queue*> queues_;
  std::vector<Plan*> retired_;
  std::vector<Retired> waiting_;
  Buffer* orphans_ = nullptr;  // free buffers of threads that have ended
  std::atomic<uint64_t> live_bytes_{0}, peak_bytes_{0};
};

inline constexpr uint32_t kMaxDevices = 256;
inline constexpr uint32_t kUnpooled = UINT32_MAX;

}  // namespace weft::seam
