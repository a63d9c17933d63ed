#include "seam/device.h"

#include <bit>

#include "seam/plan.h"

namespace weft::seam {
namespace {

constexpr uint64_t kSmallest = 64;               // bytes of size class 0; class k holds kSmallest << k
constexpr uint32_t kClasses = 24;                // up to 512 MiB; larger buffers go straight to the backend
constexpr uint64_t kKeptPerClass = 64ull << 20;  // bytes a thread keeps of one class before giving back

uint32_t class_of(uint64_t bytes) {
  if (bytes <= kSmallest) return 0;
  return static_cast<uint32_t>(std::bit_width((bytes - 1) / kSmallest));
}

}  // namespace

// This thread's free buffers, by device and class. At thread end they go to their device, for the next one to
// take. The lists themselves have nothing to construct or destroy, which every access would ask about.
struct ThreadPools {
  struct List {
    Buffer* head = nullptr;
    uint32_t count = 0;
  };
  List lists[kMaxDevices][kClasses];
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
}  // namespace

void ThreadPools::end() {
  gone = true;
  for (auto& device : lists)
    for (auto& list : device)
      while (Buffer* b = list.head) {
        list.head = b->next;
        std::lock_guard lock(b->device->orphan_mutex_);
        b->next = b->device->orphans_, b->device->orphans_ = b;
      }
}

void recycle(Buffer* b) {
  if (b->size_class == kUnpooled || pools.gone) return b->device->free_now(b);
  auto& list = pools.lists[b->device->index()][b->size_class];
  if (uint64_t{list.count} * b->bytes >= kKeptPerClass) {
    // Only an ordered device may still be using it; the eager queue is waited for once, not per buffer.
    if (b->device->ordered()) {
      const std::lock_guard lock(b->device->eager_mutex());
      b->device->eager_queue().pass();
    }
    return b->device->free_now(b);
  }
  if (list.count == 0) pools_end.begin();
  b->next = list.head, list.head = b, ++list.count;
}

void Device::free_now(Buffer* b) {
  live_bytes_.fetch_sub(b->bytes, std::memory_order_relaxed);
  backend_.free(device_, b->handle);
  delete b;
}

Result<BufferRef> Device::allocate(uint64_t bytes) {
  const uint32_t k = class_of(bytes);
  if (k >= kClasses || pools.gone) return allocate_fresh(bytes, kUnpooled);
  auto& list = pools.lists[index_][k];
  if (Buffer* b = list.head) {
    list.head = b->next, --list.count;
    b->references.store(1, std::memory_order_relaxed);
    return BufferRef(b);
  }
  {
    std::lock_guard lock(orphan_mutex_);
    for (Buffer** at = &orphans_; *at; at = &(*at)->next)
      if ((*at)->size_class == k) {
        Buffer* b = *at;
        *at = b->next;
        b->references.store(1, std::memory_order_relaxed);
        return BufferRef(b);
      }
  }
  auto fresh = allocate_fresh(kSmallest << k, k);
  if (fresh.ok() || fresh.status().code() != Code::out_of_memory) return fresh;
  trim();
  return allocate_fresh(bytes, kUnpooled);
}

Result<BufferRef> Device::allocate_unpooled(uint64_t bytes) { return allocate_fresh(bytes, kUnpooled); }

Result<BufferRef> Device::allocate_fresh(uint64_t bytes, uint32_t size_class) {
  bytes = std::max<uint64_t>(bytes, 1);
  CError error;
  void* handle = nullptr;
  if (capability_.max_buffer && bytes > capability_.max_buffer)
    return fail(Code::out_of_memory, "{}: a buffer of {} bytes; the device's largest is {}", name_, bytes,
                capability_.max_buffer);
  const weft_code code = backend_.allocate(device_, bytes, &handle, error.out());
  if (code != WEFT_OK)
    return fail(static_cast<Code>(code), "{}: allocating {} bytes ({} in use): {}", name_, bytes,
                live_bytes(), error.text());
  auto* b = new Buffer;
  b->size_class = size_class, b->device = this, b->handle = handle, b->bytes = bytes;
  live_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return BufferRef(b);
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
  if (pools.gone) return;
  for (auto& list : pools.lists[index_])
    while (Buffer* b = list.head) {
      list.head = b->next, --list.count;
      free_now(b);
    }
}

void Device::retire(Plan* plan) {
  if (!ordered()) return delete plan;
  std::lock_guard lock(retired_mutex_);
  retired_.push_back(plan);
}

void Device::bury_retired() {
  std::vector<Plan*> gone;
  {
    std::lock_guard lock(retired_mutex_);
    gone.swap(retired_);
  }
  for (Plan* p : gone) delete p;
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
  if (auto queue = open_queue(); queue.ok()) eager_queue_ = std::move(queue).value();
}

Device::~Device() {
  if (eager_queue_) trim();
  bury_retired();
  eager_queue_.reset();
  backend_.close_device(device_);
}

Queue::~Queue() {
  (void)synchronize();  // whoever wanted to know of an error has asked before
  device_.backend().close_queue(queue_);
}

Status Queue::Turn::status() const {
  if (mine_) return {};
  return invalid("a queue of {} is in use on another thread; open one queue a thread", queue_.device_.name());
}

Status Queue::wait() {
  CError error;
  return error.status(device_.backend().synchronize(queue_, error.out()));
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
