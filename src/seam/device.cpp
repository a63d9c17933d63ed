#include "seam/device.h"

#include <cstdlib>

#include "seam/prepared_kernel.h"

namespace weft::seam {
void Device::free_now(Buffer* b) {
  if (!uses_.none()) uses_.await(*b);
  if (b->special) return free_special(b);
  live_bytes_.fetch_sub(b->bytes, std::memory_order_relaxed);
  backend_.free(device_, b->handle);
  delete b;
}

// The owner of imported memory may reuse it as soon as its deleter runs: enqueued work must finish before.
void Device::free_special(Buffer* b) {
  const auto special = std::move(b->special);
  if (special->imported && ordered()) {
    const std::lock_guard lock(eager_mutex_);
    eager_queue_->drain();
  }
  if (special->has_handle)
    backend_.free(device_, b->handle);
  else if (!special->imported)
    std::free(special->address);
  delete b;
  if (special->end) special->end();
}

// Of memory that DLPack gives the address of; a handle counts as aligned.
static uint64_t alignment_of(const DLTensor& t) {
  const auto kind = t.device.device_type;
  const bool address = kind == kDLCPU || kind == kDLCUDA || kind == kDLCUDAHost || kind == kDLROCM;
  const uint64_t at = t.byte_offset + (address ? reinterpret_cast<uintptr_t>(t.data) : 0);
  return at % 64 == 0 ? 64 : at & -at;
}

Result<BufferRef> Device::import_memory(const DLTensor& t, uint64_t bytes, std::function<void()> end) {
  if (home_ != this) return home_->import_memory(t, bytes, std::move(end));
  CError error;
  auto b = std::make_unique<Buffer>();
  b->special = std::make_unique<Special>();
  b->special->imported = true, b->special->alignment = alignment_of(t);
  b->size_class = kUnpooled, b->device = this, b->bytes = bytes;
  if (backend_.import_memory) {
    const weft_code code = backend_.import_memory(device_, &t, bytes, &b->handle, error.out());
    if (code != WEFT_OK) return error.status(code).at(fmt::format("{}: importing {} bytes", name_, bytes));
  } else if (host_memory() && t.device.device_type == kDLCPU) {
    b->handle = static_cast<std::byte*>(t.data) + t.byte_offset, b->special->has_handle = false;
  } else {
    return fail(Code::unsupported, "{}: memory of DLPack's device type {} is out of its reach", name_,
                static_cast<int>(t.device.device_type));
  }
  b->special->end = std::move(end);
  return BufferRef(b.release());
}

Result<BufferRef> Device::allocate_unpooled(uint64_t bytes) { return allocate_or_trim(bytes, kUnpooled); }

Result<BufferRef> Device::allocate_or_trim(uint64_t bytes, uint32_t size_class) {
  if (home_ != this) return home_->allocate_or_trim(bytes, size_class);
  auto fresh = allocate_fresh(bytes, size_class);
  if (fresh.ok() || fresh.status().code() != Code::out_of_memory) return fresh;
  trim();
  return allocate_fresh(bytes, size_class);
}

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
    return fail(
        static_cast<Code>(code), "{}: allocating {} bytes ({} in use{}): {}", name_, bytes, live_bytes(),
        backend_.memory_free ? fmt::format(", {} free", backend_.memory_free(device_)) : "", error.text());
  b->size_class = size_class, b->device = this, b->handle = handle, b->bytes = bytes;
  const uint64_t now = live_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  for (uint64_t peak = peak_bytes_.load(std::memory_order_relaxed);
       now > peak && !peak_bytes_.compare_exchange_weak(peak, now, std::memory_order_relaxed);) {
  }
  return BufferRef(b.release());
}

Result<BufferRef> Device::allocate_pinned(uint64_t bytes) {
  if (home_ != this) return home_->allocate_pinned(bytes);
  constexpr uint64_t kAlignment = 64;
  bytes = (std::max<uint64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  CError error;
  void *handle = nullptr, *address = nullptr;
  auto b = std::make_unique<Buffer>();
  b->special = std::make_unique<Special>();
  weft_code code = WEFT_OK;
  if (backend_.allocate_pinned)
    code = backend_.allocate_pinned(device_, bytes, &handle, &address, error.out());
  else if (!(address = std::aligned_alloc(kAlignment, bytes)))
    return fail(Code::out_of_memory, "{}: pinned memory of {} bytes: the host has none left", name_, bytes);
  if (code != WEFT_OK)
    return fail(static_cast<Code>(code), "{}: pinned memory of {} bytes: {}", name_, bytes, error.text());
  b->size_class = kUnpooled, b->device = this, b->handle = handle, b->bytes = bytes;
  b->special->address = static_cast<std::byte*>(address), b->special->has_handle = handle != nullptr;
  return BufferRef(b.release());
}

void Device::retire(PreparedKernel* plan) {
  if (home_ != this) return home_->retire(plan);
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

// Kernels retired before now were launched before now: they wait for the other queues that hold launches.
// If memory for that runs out, they stay until the next call.
void Device::passed(const Queue& queue) {
  if (!uses_.none()) uses_.forget(queue);
  std::vector<PreparedKernel*> ended;
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
  for (PreparedKernel* p : ended) delete p;
}

Result<std::unique_ptr<Queue>> Device::open_queue() {
  if (home_ != this) return home_->open_queue();
  CError error;
  weft_queue queue = nullptr;
  const weft_code code = backend_.open_queue(device_, &queue, error.out());
  if (code != WEFT_OK) return error.status(code).at(name_ + ": opening a queue");
  return std::make_unique<Queue>(*this, queue);
}

Result<std::unique_ptr<Queue>> Device::import_queue(void* native) {
  if (home_ != this) return home_->import_queue(native);
  if (!backend_.import_queue) return fail(Code::unsupported, "{} takes no queues of others", name_);
  CError error;
  weft_queue queue = nullptr;
  WEFT_CHECK(
      error.status(backend_.import_queue(device_, native, &queue, error.out())).at("importing a queue"));
  return std::make_unique<Queue>(*this, queue);
}

Result<void*> Device::native(const Queue* queue, const char* name) {
  if (!backend_.native) return fail(Code::unsupported, "{} gives no object of its vendor's away", name_);
  CError error;
  void* object = nullptr;
  WEFT_CHECK(
      error.status(backend_.native(device_, queue ? queue->c() : nullptr, name, &object, error.out())));
  return object;
}

static DLDevice dl_of(const weft_capability& c) {
  const auto type = c.dlpack ? static_cast<DLDeviceType>(c.dlpack) : c.host_memory ? kDLCPU : kDLExtDev;
  return {type, static_cast<int32_t>(c.ordinal)};
}

Device::Device(const weft_backend& backend, weft_device device, const weft_capability& capability,
               uint32_t index)
    : home_(this),
      backend_(backend),
      device_(device),
      capability_(capability),
      index_(index),
      dl_(dl_of(capability)),
      name_(backend.name) {
  if (capability.ordinal) name_ += fmt::format(":{}", capability.ordinal);
}
Device::Device(Device& home, std::string name, uint32_t index)
    : home_(&home),
      backend_(home.backend_),
      device_(home.device_),
      capability_(home.capability_),
      index_(index),
      dl_(home.dl_),
      name_(std::move(name)) {}

Result<const BufferRef*> Device::staging(uint64_t bytes) {
  if (home_ != this) return home_->staging(bytes);
  for (BufferRef& piece : staging_)
    if (!piece || piece->bytes < bytes) {
      WEFT_TRY(piece, allocate_pinned(bytes));
    }
  return static_cast<const BufferRef*>(staging_);
}

Status Device::start() {
  WEFT_TRY(eager_queue_, open_queue());
  return {};
}

Device::~Device() {
  for (const auto& end : at_close) end();
  if (home_ != this) return;
  if (eager_queue_) trim();
  forget_pools();
  eager_queue_.reset();
  for (const Retired& r : waiting_)
    for (PreparedKernel* p : r.plans) delete p;
  for (PreparedKernel* p : retired_) delete p;
  backend_.close_device(device_);
}

}  // namespace weft::seam
