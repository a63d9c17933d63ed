#include "seam/device.h"

#include <bit>

#include "seam/plan.h"

namespace weft::seam {
namespace {

// Size classes: powers of two from 64 bytes to 1 KiB, then sixteen steps to each power, so that less than a
// sixteenth of a large buffer is not used.
constexpr uint64_t kSmallest = 64;
constexpr uint32_t kSmallClasses = 5, kStepBits = 4, kSmallBits = 10;
constexpr uint32_t kClasses = kSmallClasses + ((29 - kSmallBits) << kStepBits);  // up to 512 MiB; larger
                                                                                 // ones are not pooled
constexpr uint64_t kKept = 1ull << 30;      // bytes that a thread keeps of one device before giving back
constexpr uint64_t kWorthGiving = 1 << 16;  // smaller buffers are never given back to make room

uint32_t class_of(uint64_t bytes) {
  if (bytes <= kSmallest) return 0;
  const uint64_t last = bytes - 1;
  const auto octave = static_cast<uint32_t>(std::bit_width(last)) - 1;
  if (octave < kSmallBits) return octave - 5;
  const auto step = static_cast<uint32_t>(last >> (octave - kStepBits)) & ((1u << kStepBits) - 1);
  return kSmallClasses + ((octave - kSmallBits) << kStepBits) + step;
}
// What is taken for a buffer of class k: all of the class, but no more than is asked for of those that count.
// Programs that repeat themselves ask for the same sizes again.
uint64_t rounded(uint64_t bytes, uint32_t k) {
  if (k < kSmallClasses) return kSmallest << k;
  if (bytes >= kWorthGiving) return (bytes + kSmallest - 1) / kSmallest * kSmallest;
  const uint32_t octave = ((k - kSmallClasses) >> kStepBits) + kSmallBits,
                 step = (k - kSmallClasses) & ((1u << kStepBits) - 1);
  return uint64_t{(1u << kStepBits) + step + 1} << (octave - kStepBits);
}

}  // namespace

// This thread's free buffers of one device, by class, and what it has in use. A buffer that another thread
// lets go of is counted there.
struct ThreadPool {
  Buffer* lists[kClasses] = {};
  int64_t kept = 0;                 // bytes in the lists
  int64_t live = 0, most_live = 0;  // bytes of buffers in use, by what was asked for
};

// By device. At thread end the free buffers go to their device, for the next thread to take. The pointers
// have nothing to construct or destroy, which every access would ask about.
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

[[gnu::noinline]] ThreadPool& first_pool(uint32_t device) {
  pools_end.begin();
  return *(pools.of[device] = new ThreadPool);
}
ThreadPool& pool_of(uint32_t device) {
  ThreadPool* pool = pools.of[device];
  return pool ? *pool : first_pool(device);
}

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

void ThreadPools::end() {
  gone = true;
  for (ThreadPool*& pool : of) {
    if (!pool) continue;
    for (uint32_t k = 0; k < kClasses; ++k)
      while (Buffer* b = take(*pool, k)) {
        std::lock_guard lock(b->device->orphan_mutex_);
        b->next = b->device->orphans_, b->device->orphans_ = b;
      }
    delete std::exchange(pool, nullptr);
  }
}

void recycle(Buffer* b) {
  if (pools.gone) return b->device->free_now(b);
  ThreadPool& pool = pool_of(b->device->index());
  pool.live -= static_cast<int64_t>(b->asked);
  if (b->size_class == kUnpooled) return b->device->free_now(b);
  if (pool.kept + static_cast<int64_t>(b->bytes) > static_cast<int64_t>(kKept)) {
    // Only an ordered device may still be using it; the eager queue is waited for once, not per buffer.
    if (b->device->ordered()) {
      const std::lock_guard lock(b->device->eager_mutex());
      b->device->eager_queue().pass();
    }
    return b->device->free_now(b);
  }
  Buffer*& first = pool.lists[b->size_class];
  b->next = first, first = b, pool.kept += static_cast<int64_t>(b->bytes);
}

// Before `bytes` are taken anew: what is kept makes room, so that all together stay within the most that was
// ever in use. Programs that repeat themselves find most of what they need in the pool, and do not come here.
// Not for ordered devices, which would have to be waited for.
void Device::make_room(ThreadPool& pool, uint32_t k, uint64_t bytes) {
  if (bytes < kWorthGiving || ordered()) return;
  const int64_t live = pool.live + static_cast<int64_t>(bytes), most = std::max(pool.most_live, live);
  const auto too_much = [&] { return live + pool.kept > most; };
  for (uint32_t larger = k; larger < kClasses && too_much(); ++larger)
    while (Buffer* b = too_much() ? take(pool, larger) : nullptr) free_now(b);
  for (uint32_t smaller = k; smaller-- > class_of(kWorthGiving) && too_much();)
    while (Buffer* b = too_much() ? take(pool, smaller) : nullptr) free_now(b);
}

void Device::free_now(Buffer* b) {
  live_bytes_.fetch_sub(b->bytes, std::memory_order_relaxed);
  backend_.free(device_, b->handle);
  delete b;
}

Result<BufferRef> Device::allocate(uint64_t bytes) {
  const uint32_t k = class_of(bytes);
  if (pools.gone) return allocate_fresh(bytes, kUnpooled);
  ThreadPool& pool = pool_of(index_);
  if (k < kClasses) {
    if (Buffer* b = take(pool, k, bytes)) return reused(pool, b, bytes);
    std::lock_guard lock(orphan_mutex_);
    for (Buffer** at = &orphans_; *at; at = &(*at)->next)
      if ((*at)->size_class == k && (*at)->bytes >= bytes) {
        Buffer* b = *at;
        *at = b->next;
        return reused(pool, b, bytes);
      }
  }
  make_room(pool, std::min(k, kClasses), bytes);
  auto fresh = k < kClasses ? allocate_fresh(rounded(bytes, k), k) : allocate_fresh(bytes, kUnpooled);
  if (!fresh.ok() && fresh.status().code() == Code::out_of_memory) {
    trim();
    fresh = allocate_fresh(bytes, kUnpooled);
  }
  if (!fresh.ok()) return fresh;
  count(pool, *fresh.value().get(), bytes);
  return fresh;
}

MemoryUse Device::begin_peak() {
  ThreadPool& pool = pool_of(index_);
  pool.most_live = pool.live;
  const uint64_t now = live_bytes();
  peak_bytes_.store(now, std::memory_order_relaxed);
  return {now, static_cast<uint64_t>(std::max<int64_t>(0, pool.live))};
}
MemoryUse Device::peak() const {
  return {peak_bytes_.load(std::memory_order_relaxed),
          static_cast<uint64_t>(std::max<int64_t>(0, pool_of(index_).most_live))};
}

Result<BufferRef> Device::allocate_unpooled(uint64_t bytes) { return allocate_fresh(bytes, kUnpooled); }

Result<BufferRef> Device::allocate_fresh(uint64_t bytes, uint32_t size_class) {
  bytes = std::max<uint64_t>(bytes, 1);
  CError error;
  void* handle = nullptr;
  if (capability_.max_buffer && bytes > capability_.max_buffer)
    return fail(Code::out_of_memory, "{}: a buffer of {} bytes; the device's largest is {}", name_, bytes,
                capability_.max_buffer);
  auto b = std::make_unique<Buffer>();  // first: what fails later would leave the handle to nobody
  const weft_code code = backend_.allocate(device_, bytes, &handle, error.out());
  if (code != WEFT_OK)
    return fail(static_cast<Code>(code), "{}: allocating {} bytes ({} in use): {}", name_, bytes,
                live_bytes(), error.text());
  b->size_class = size_class, b->device = this, b->handle = handle, b->bytes = bytes;
  const uint64_t now = live_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  for (uint64_t peak = peak_bytes_.load(std::memory_order_relaxed);
       now > peak && !peak_bytes_.compare_exchange_weak(peak, now, std::memory_order_relaxed);) {
  }
  return BufferRef(b.release());
}

void Device::trim() {
  {
    const std::lock_guard lock(eager_mutex_);
    eager_queue_->pass();
  }
  std::lock_guard lock(orphan_mutex_);
  while (Buffer* b = orphans_) {
    orphans_ = b->next;
    free_now(b);
  }
  if (pools.gone || !pools.of[index_]) return;
  for (uint32_t k = 0; k < kClasses; ++k)
    while (Buffer* b = take(*pools.of[index_], k)) free_now(b);
}

void Device::retire(Plan* plan) {
  if (!ordered()) return delete plan;
  std::lock_guard lock(retired_mutex_);
  retired_.push_back(plan);
}

void Device::enter(Queue& queue) {
  std::lock_guard lock(retired_mutex_);
  queues_.push_back(&queue);
}
void Device::leave(Queue& queue) {
  passed(queue);
  std::lock_guard lock(retired_mutex_);
  std::erase(queues_, &queue);
}

// What was retired before now was launched before now: it waits for the other queues with launches in them.
// Without memory for that, plans stay until the next time.
void Device::passed(const Queue& queue) {
  std::vector<Plan*> ended;
  try {
    std::lock_guard lock(retired_mutex_);
    if (!retired_.empty()) {
      std::vector<const Queue*> wait_for = {&queue};
      for (const Queue* other : queues_)
        if (other != &queue && other->has_launches()) wait_for.push_back(other);
      waiting_.emplace_back().wait_for = std::move(wait_for);
      waiting_.back().plans.swap(retired_);
    }
    for (auto& r : waiting_) {
      std::erase(r.wait_for, &queue);
      if (r.wait_for.empty()) ended.insert(ended.end(), r.plans.begin(), r.plans.end());
    }
    std::erase_if(waiting_, [](const Retired& r) { return r.wait_for.empty(); });
  } catch (const std::bad_alloc&) {
    ended.clear();
  }
  for (Plan* p : ended) delete p;
}

Result<std::unique_ptr<Queue>> Device::open_queue() {
  CError error;
  weft_queue queue = nullptr;
  const weft_code code = backend_.open_queue(device_, &queue, error.out());
  if (code != WEFT_OK) return error.status(code).at(name_ + ": opening a queue");
  return std::make_unique<Queue>(*this, queue);
}

Device::Device(const weft_backend& backend, weft_device device, const weft_capability& capability,
               uint32_t index)
    : backend_(backend), device_(device), capability_(capability), index_(index), name_(backend.name) {
  if (capability.ordinal) name_ += fmt::format(":{}", capability.ordinal);
}

Status Device::start() {
  WEFT_TRY(eager_queue_, open_queue());
  return {};
}

Device::~Device() {
  if (eager_queue_) trim();
  eager_queue_.reset();
  for (const Retired& r : waiting_)
    for (Plan* p : r.plans) delete p;
  for (Plan* p : retired_) delete p;
  backend_.close_device(device_);
}

Queue::Queue(Device& device, weft_queue queue) : device_(device), queue_(queue) {
  if (device.ordered()) device.enter(*this);
}
Queue::~Queue() {
  (void)synchronize();  // whoever wanted to know of an error has asked before
  if (device_.ordered()) device_.leave(*this);
  device_.backend().close_queue(queue_);
}

Status Queue::Turn::status() const {
  if (mine_) return {};
  return invalid("a queue of {} is in use on another thread; open one queue a thread", queue_.device_.name());
}

Status Queue::wait() {
  CError error;
  const weft_code code = device_.backend().synchronize(queue_, error.out());
  launches_.store(false, std::memory_order_relaxed);
  if (device_.ordered()) device_.passed(*this);
  return error.status(code);
}

Status Queue::synchronize() {
  const Turn turn(*this);
  WEFT_CHECK(turn.status());
  Status met = wait();
  if (kept_.ok()) return met;
  return std::exchange(kept_, Status());
}

void Queue::pass() {
  const Turn turn(*this);
  if (!turn.status().ok()) return;
  Status met = wait();
  if (kept_.ok()) kept_ = std::move(met);
}

Status Queue::enqueue(const weft_copy& copy) {
  const Turn turn(*this);
  WEFT_CHECK(turn.status());
  CError error;
  return error.status(device_.backend().copy(queue_, &copy, error.out()));
}

Status Queue::copy_in(const Buffer& to, uint64_t offset, const void* from, uint64_t bytes) {
  const weft_copy copy{.size = sizeof(weft_copy),
                       .reserved = 0,
                       .source = nullptr,
                       .source_offset = 0,
                       .target = to.handle,
                       .target_offset = offset,
                       .host_source = from,
                       .host_target = nullptr,
                       .bytes = bytes};
  return enqueue(copy);
}

Status Queue::copy_out(void* to, const Buffer& from, uint64_t offset, uint64_t bytes) {
  const weft_copy copy{.size = sizeof(weft_copy),
                       .reserved = 0,
                       .source = from.handle,
                       .source_offset = offset,
                       .target = nullptr,
                       .target_offset = 0,
                       .host_source = nullptr,
                       .host_target = to,
                       .bytes = bytes};
  return enqueue(copy);
}

Status Queue::copy(const Buffer& to, uint64_t to_offset, const Buffer& from, uint64_t from_offset,
                   uint64_t bytes) {
  const weft_copy copy{.size = sizeof(weft_copy),
                       .reserved = 0,
                       .source = from.handle,
                       .source_offset = from_offset,
                       .target = to.handle,
                       .target_offset = to_offset,
                       .host_source = nullptr,
                       .host_target = nullptr,
                       .bytes = bytes};
  return enqueue(copy);
}

}  // namespace weft::seam
