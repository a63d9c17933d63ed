#include <bit>

#include "base/biased_lock.h"
#include "seam/device.h"

// Per-thread pools of free device memory: a hit takes no lock.
namespace weft::seam {
namespace {

// Size classes: powers of two from 64 bytes to 1 KiB, then sixteen steps to each power, so that less than a
// sixteenth of a large buffer is not used.
constexpr uint64_t kSmallest = 64;
constexpr uint32_t kSmallClasses = 5, kStepBits = 4, kSmallBits = 10;
constexpr uint32_t kClasses = kSmallClasses + ((29 - kSmallBits) << kStepBits);  // up to 512 MiB; larger
                                                                                 // ones are not pooled
constexpr uint64_t kKept = 1ull << 30;      // bytes that a thread keeps of host memory
constexpr uint64_t kWorthGiving = 1 << 16;  // smaller buffers are never given back to make room

uint32_t class_of(uint64_t bytes) {
  if (bytes <= kSmallest) return 0;
  const uint64_t last = bytes - 1;
  const auto octave = static_cast<uint32_t>(std::bit_width(last)) - 1;
  if (octave < kSmallBits) return octave - 5;
  const auto step = static_cast<uint32_t>(last >> (octave - kStepBits)) & ((1u << kStepBits) - 1);
  return kSmallClasses + ((octave - kSmallBits) << kStepBits) + step;
}
// Bytes allocated for a buffer of class k: the whole class for small ones, the exact size for large ones,
// since repeating programs ask for the same sizes again.
uint64_t rounded(uint64_t bytes, uint32_t k) {
  if (k < kSmallClasses) return kSmallest << k;
  if (bytes >= kWorthGiving) return (bytes + kSmallest - 1) / kSmallest * kSmallest;
  const uint32_t octave = ((k - kSmallClasses) >> kStepBits) + kSmallBits,
                 step = (k - kSmallClasses) & ((1u << kStepBits) - 1);
  return uint64_t{(1u << kStepBits) + step + 1} << (octave - kStepBits);
}

// Bytes that a thread pools of one device. Freeing is slow on devices with memory of their own, which no
// other process needs: a quarter may be pooled there.
int64_t most_kept(const weft_capability& c) {
  return static_cast<int64_t>(c.host_memory ? kKept : std::max(kKept, c.memory / 4));
}

}  // namespace

// A thread's free buffers of one device, by class, and its bytes in use. A buffer freed by another thread is
// counted there.
struct ThreadPool {
  Device* device = nullptr;         // none once it is closed
  BiasedLock lock;                  // of `kept` and `lists`: trim reaches every thread's
  int64_t kept = 0;                 // bytes in the lists
  int64_t live = 0, most_live = 0;  // bytes of buffers in use, by what was asked for
  Buffer* lists[kClasses] = {};
};

// By device. At thread exit the free buffers go to their device, for other threads. Plain pointers: a
// thread_local with a constructor would be checked at every access.
struct ThreadPools {
  ThreadPool* of[kMaxDevices + 1] = {};  // the last is that of a device that is opened once more
  bool gone = false;  // a tensor may outlive its thread's pools: static or thread-local ones do

  void end();
};

namespace {
constinit thread_local ThreadPools pools;

struct ThreadPoolsEnd {
  void begin() {}  // a use, so that it exists
  ~ThreadPoolsEnd() { pools.end(); }
};
thread_local ThreadPoolsEnd pools_end;

// The first of the class that is large enough: large ones differ a little in size.
Buffer* take(ThreadPool& pool, uint32_t k, uint64_t bytes = 0) {
  for (Buffer** at = &pool.lists[k]; *at; at = &(*at)->next) {
    Buffer* b = *at;
    if (b->bytes < bytes) continue;
    *at = b->next, pool.kept -= static_cast<int64_t>(b->bytes);
    return b;
  }
  return nullptr;
}
Buffer* take_any(ThreadPool& pool) {
  for (uint32_t k = 0; pool.kept > 0 && k < kClasses; ++k)
    if (Buffer* b = take(pool, k)) return b;
  return nullptr;
}
Buffer* take_own(ThreadPool& pool, uint32_t k, uint64_t bytes) {
  const BiasedLock::Owner lock(pool.lock);
  return take(pool, k, bytes);
}
void count(ThreadPool& pool, Buffer& b, uint64_t asked) {
  b.asked = asked;
  b.viewed.store(false, std::memory_order_relaxed);
  pool.live += static_cast<int64_t>(asked);
  if (pool.live > pool.most_live) pool.most_live = pool.live;
}
BufferRef reused(ThreadPool& pool, Buffer* b, uint64_t asked) {
  b->references.store(1, std::memory_order_relaxed);
  count(pool, *b, asked);
  return BufferRef(b);
}

}  // namespace

[[gnu::noinline]] ThreadPool& Device::first_pool() {
  pools_end.begin();
  ThreadPool*& pool = pools.of[index_];
  if (!pool) pool = new ThreadPool;
  pool->device = this;
  const std::lock_guard lock(pools_mutex_);
  pools_.push_back(pool);
  return *pool;
}
ThreadPool& Device::this_threads_pool() {
  ThreadPool* pool = pools.of[index_];
  return pool && pool->device == this ? *pool : first_pool();
}

void ThreadPools::end() {
  gone = true;
  for (ThreadPool*& pool : of) {
    if (!pool) continue;
    if (pool->device) pool->device->adopt_pool(*pool);
    delete std::exchange(pool, nullptr);
  }
}
void Device::adopt_pool(ThreadPool& pool) {
  const std::lock_guard lock(pools_mutex_);
  std::erase(pools_, &pool);
  while (Buffer* b = take_any(pool)) b->next = orphans_, orphans_ = b;
}
void Device::forget_pools() {
  const std::lock_guard lock(pools_mutex_);
  for (ThreadPool* pool : pools_) pool->device = nullptr;
}

// An ordered device may still be using it.
void Device::free_after_use(Buffer* b) {
  if (ordered()) {
    const std::lock_guard lock(eager_mutex_);
    eager_queue_->drain();
  }
  free_now(b);
}

void recycle(Buffer* b) {
  if (pools.gone) return b->device->free_after_use(b);
  ThreadPool& pool = b->device->this_threads_pool();
  pool.live -= static_cast<int64_t>(b->asked);
  if (b->size_class == kUnpooled) return b->device->free_after_use(b);
  {
    const BiasedLock::Owner lock(pool.lock);
    if (pool.kept + static_cast<int64_t>(b->bytes) <= most_kept(b->device->capability())) {
      Buffer*& first = pool.lists[b->size_class];
      b->next = first, first = b, pool.kept += static_cast<int64_t>(b->bytes);
      return;
    }
  }
  b->device->free_after_use(b);
}

// Before `bytes` are allocated, trims the pool so that the total stays within the peak use. Repeating
// programs are mostly served by the pool. Not for ordered devices, which would have to be waited for.
void Device::make_room(ThreadPool& pool, uint32_t k, uint64_t bytes) {
  if (bytes < kWorthGiving || ordered()) return;
  const BiasedLock::Owner lock(pool.lock);
  const int64_t live = pool.live + static_cast<int64_t>(bytes), most = std::max(pool.most_live, live);
  const auto too_much = [&] { return live + pool.kept > most; };
  for (uint32_t larger = k; larger < kClasses && too_much(); ++larger)
    while (Buffer* b = too_much() ? take(pool, larger) : nullptr) free_now(b);
  for (uint32_t smaller = k; smaller-- > class_of(kWorthGiving) && too_much();)
    while (Buffer* b = too_much() ? take(pool, smaller) : nullptr) free_now(b);
}

// From a pool: a queue of a session may use it still.
Result<BufferRef> Device::taken(BufferRef buffer) {
  const std::lock_guard lock(eager_mutex_);
  WEFT_CHECK(order(*eager_queue_, *buffer.get()));
  return buffer;
}

Result<BufferRef> Device::allocate(uint64_t bytes) {
  if (home_ != this) [[unlikely]]
    return home_->allocate(bytes);
  const uint32_t k = class_of(bytes);
  if (pools.gone) return allocate_fresh(bytes, kUnpooled);
  ThreadPool& pool = this_threads_pool();
  if (k < kClasses) {
    if (Buffer* b = take_own(pool, k, bytes)) {
      if (uses_.none()) [[likely]]
        return reused(pool, b, bytes);
      return taken(reused(pool, b, bytes));
    }
    const std::lock_guard lock(pools_mutex_);
    for (Buffer** at = &orphans_; *at; at = &(*at)->next)
      if ((*at)->size_class == k && (*at)->bytes >= bytes) {
        Buffer* b = *at;
        *at = b->next;
        return taken(reused(pool, b, bytes));
      }
  }
  make_room(pool, std::min(k, kClasses), bytes);
  auto fresh = k < kClasses ? allocate_or_trim(rounded(bytes, k), k) : allocate_or_trim(bytes, kUnpooled);
  if (!fresh.ok()) return fresh;
  count(pool, *fresh.value().get(), bytes);
  return fresh;
}

MemoryUse Device::begin_peak() {
  if (home_ != this) return home_->begin_peak();
  ThreadPool& pool = this_threads_pool();
  pool.most_live = pool.live;
  const uint64_t now = live_bytes();
  peak_bytes_.store(now, std::memory_order_relaxed);
  return {now, static_cast<uint64_t>(std::max<int64_t>(0, pool.live))};
}
MemoryUse Device::peak() {
  if (home_ != this) return home_->peak();
  return {peak_bytes_.load(std::memory_order_relaxed),
          static_cast<uint64_t>(std::max<int64_t>(0, this_threads_pool().most_live))};
}

// Buffers that other threads release during this wait may be in use still: only earlier ones are freed.
void Device::trim() {
  if (home_ != this) return home_->trim();
  {
    const std::lock_guard lock(staging_mutex_);
    for (BufferRef& piece : staging_) piece = BufferRef();
  }
  Buffer* free = nullptr;
  const auto add = [&](Buffer* b) { b->next = free, free = b; };
  {
    const std::lock_guard lock(pools_mutex_);
    while (Buffer* b = orphans_) orphans_ = b->next, add(b);
    for (ThreadPool* pool : pools_) {
      const auto empty = [&] {
        while (Buffer* b = take_any(*pool)) add(b);
      };
      pool == pools.of[index_] ? pool->lock.own(empty) : pool->lock.visit(empty);
    }
  }
  {
    const std::lock_guard lock(eager_mutex_);
    eager_queue_->drain();
  }
  while (Buffer* b = free) free = b->next, free_now(b);
}

}  // namespace weft::seam
