#include "conformance/seam/mirrored.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>

#include "weft/backend/base.hpp"
#include "weft/backend/views.hpp"
#include "weft/status.h"

namespace weft::conformance {

// Beside each tensor, so that a fault that writes there reaches the device.
constexpr uint64_t kMargin = 64;

/// Addresses for a whole buffer, of which only the pages that are touched take memory.
class Reserved {
 public:
  explicit Reserved(uint64_t bytes) : bytes_(bytes + 2 * kPage) {
    base_ = static_cast<char*>(
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (base_ == MAP_FAILED)
      throw Error(fail(Code::out_of_memory, "no addresses for a mirror of {} bytes", bytes));
  }
  Reserved(const Reserved&) = delete;
  ~Reserved() { ::munmap(base_, bytes_); }
  /// There is a page before it, too.
  char* data() const { return base_ + kPage; }

 private:
  static constexpr uint64_t kPage = 4096;
  uint64_t bytes_;
  char* base_;
};

/// The mirrors of one launch.
class Mirrored::Mirrors {
 public:
  Mirrors(Mirrored& owner, const weft_launch* l) : owner_(owner), launch_(*l) {
    const weft_call& call = *l->plan->call;
    in_ = list_of(l->inputs, call.n_inputs), out_ = list_of(l->outputs, call.n_outputs);
    if (l->workspace) add(*l->workspace);
    launch_.workspace = mirrored(l->workspace);
    for (auto* list : {&in_, &out_})
      for (const weft_tensor*& t : *list) t = mirrored(t);
    launch_.inputs = in_.data(), launch_.outputs = out_.data();
    outer_ = std::exchange(current, this);
  }
  Mirrors(const Mirrors&) = delete;
  ~Mirrors() { current = outer_; }

  static Mirrors* of_this_thread() { return current; }
  const weft_launch* launch() const { return &launch_; }

  /// What the device holds.
  weft_code read(weft_error* e) {
    for (Part& p : parts_) {
      p.held.resize(p.end - p.begin);
      if (const weft_code code = copy(p, 0, p.held.size(), nullptr, p.held.data(), e); code != WEFT_OK)
        return code;
      std::ranges::copy(p.held, p.seen());
    }
    return WEFT_OK;
  }

  /// Writes what has changed since, and nothing beside it.
  weft_code write(weft_error* e) {
    for (Part& p : parts_) {
      const char* const now = p.seen();
      const auto [from, other] = std::mismatch(p.held.begin(), p.held.end(), now);
      if (from == p.held.end()) continue;
      const auto first = static_cast<uint64_t>(from - p.held.begin());
      uint64_t end = p.held.size();
      while (now[end - 1] == p.held[end - 1]) --end;
      if (const weft_code code = copy(p, first, end - first, now + first, nullptr, e); code != WEFT_OK)
        return code;
      std::copy(now + first, now + end, p.held.begin() + static_cast<std::ptrdiff_t>(first));
    }
    return WEFT_OK;
  }

  Place place_of(const weft_tensor* t) const {
    const Buffer* b = buffer_at(t->dl.data);
    return {launch_.device, b ? b->handle : nullptr, t->dl.byte_offset};
  }

  /// The launch in terms of the device again, and waits for it. Tensors that lie elsewhere on the host are
  /// copied to it.
  weft_code launch_on_device(const weft_launch* l, weft_error* e) {
    if (const weft_code code = write(e); code != WEFT_OK) return code;
    std::deque<weft_tensor> tensors;
    std::deque<void*> lent;
    weft_code code = WEFT_OK;
    const auto on_device = [&](const weft_tensor* t) -> const weft_tensor* {
      if (!t || code != WEFT_OK) return t;
      weft_tensor& own = tensors.emplace_back(*t);
      if (const Buffer* b = buffer_at(t->dl.data)) return own.dl.data = b->handle, &own;
      code = lend(own, lent, e);
      return &own;
    };
    weft_launch own = *l;
    std::vector<const weft_tensor*> in(l->inputs, l->inputs + l->plan->call->n_inputs),
        out(l->outputs, l->outputs + l->plan->call->n_outputs);
    for (auto* list : {&in, &out})
      for (const weft_tensor*& t : *list) t = on_device(t);
    own.inputs = in.data(), own.outputs = out.data(), own.workspace = on_device(l->workspace);
    if (code == WEFT_OK) code = owner_.Wrapped::launch(&own, e);
    weft_error later{.size = sizeof later, .text = {}};
    if (const weft_code late = owner_.inner().synchronize(l->queue, &later);
        code == WEFT_OK && late != WEFT_OK)
      code = backend::fill(e, late, std::string(later.text));
    for (void* handle : lent) owner_.inner().free(l->device, handle);
    const weft_code back = read(&later);
    return code == WEFT_OK && back != WEFT_OK ? backend::fill(e, back, std::string(later.text)) : code;
  }

 private:
  struct Buffer {
    Buffer(void* h, uint64_t bytes) : handle(h), memory(bytes) {}
    void* handle;
    Reserved memory;
  };
  /// Some bytes of a buffer, as they were on the device when that was looked at last.
  struct Part {
    const Buffer* buffer;
    uint64_t begin, end;
    std::vector<char> held = {};
    char* seen() const { return buffer->memory.data() + begin; }
  };

  std::vector<const weft_tensor*> list_of(const weft_tensor* const* list, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i)
      if (list[i]) add(*list[i]);
    std::vector<const weft_tensor*> all(list, list + n);
    all.push_back(nullptr);  // a call without operands has a first one, too, which is absent
    return all;
  }
  // Parts that touch become one.
  void add(const weft_tensor& t) {
    const auto bytes = static_cast<uint64_t>(extent(t));
    if (bytes == 0) return;
    const uint64_t size = std::max(owner_.size_of(t.dl.data), t.dl.byte_offset + bytes);
    const auto known = std::ranges::find(buffers_, t.dl.data, &Buffer::handle);
    const Buffer* const buffer = known == buffers_.end() ? &buffers_.emplace_back(t.dl.data, size) : &*known;
    Part part{buffer, t.dl.byte_offset - std::min(kMargin, t.dl.byte_offset),
              std::min(size, t.dl.byte_offset + bytes + kMargin)};
    for (auto p = parts_.begin(); p != parts_.end();) {
      if (p->buffer != buffer || p->begin > part.end || part.begin > p->end) {
        ++p;
        continue;
      }
      part.begin = std::min(part.begin, p->begin), part.end = std::max(part.end, p->end);
      p = parts_.erase(p);
    }
    parts_.push_back(std::move(part));
  }
  // From the first element to the last.
  static int64_t extent(const weft_tensor& t) {
    const backend::TensorView view(&t);
    if (!t.dl.strides || view.size() == 0) return view.bytes();
    int64_t last = 0;
    for (int32_t d = 0; d < t.dl.ndim; ++d)
      last += (t.dl.shape[d] - 1) * std::max<int64_t>(t.dl.strides[d], 0);
    return (last + 1) * static_cast<int64_t>(byte_size(view.dtype()));
  }
  const weft_tensor* mirrored(const weft_tensor* t) {
    if (!t) return t;
    weft_tensor& own = tensors_.emplace_back(*t);
    const auto b = std::ranges::find(buffers_, t->dl.data, &Buffer::handle);
    if (b != buffers_.end()) own.dl.data = b->memory.data();
    return &own;
  }
  const Buffer* buffer_at(const void* data) const {
    for (const Buffer& b : buffers_)
      if (b.memory.data() == data) return &b;
    return nullptr;
  }
  weft_code copy(const Part& p, uint64_t at, uint64_t bytes, const void* from, void* to, weft_error* e) {
    return copy_bytes(owner_, launch_.queue, p.buffer->handle, p.begin + at, bytes, from, to, e);
  }
  weft_code lend(weft_tensor& t, std::deque<void*>& lent, weft_error* e) {
    const auto bytes = static_cast<uint64_t>(extent(t));
    if (bytes == 0) return WEFT_OK;
    void* handle = nullptr;
    if (const weft_code code = owner_.inner().allocate(launch_.device, bytes, &handle, e); code != WEFT_OK)
      return code;
    lent.push_back(handle);
    const char* const from = static_cast<const char*>(t.dl.data) + t.dl.byte_offset;
    t.dl.data = handle, t.dl.byte_offset = 0;
    return copy_bytes(owner_, launch_.queue, handle, 0, bytes, from, nullptr, e);
  }

  friend class Mirrored;
  static weft_code copy_bytes(const Mirrored& owner, weft_queue q, void* handle, uint64_t at, uint64_t bytes,
                              const void* from, void* to, weft_error* e) {
    weft_copy c{.size = sizeof c};
    c.bytes = bytes, c.host_source = from, c.host_target = to;
    if (from)
      c.target = handle, c.target_offset = at;
    else
      c.source = handle, c.source_offset = at;
    return owner.inner().copy(q, &c, e);
  }

  static thread_local Mirrors* current;
  Mirrored& owner_;
  weft_launch launch_;
  Mirrors* outer_ = nullptr;
  std::deque<Buffer> buffers_;
  std::deque<weft_tensor> tensors_;
  std::deque<Part> parts_;
  std::vector<const weft_tensor*> in_, out_;
};
thread_local Mirrored::Mirrors* Mirrored::Mirrors::current = nullptr;

weft_code Mirrored::enter(const weft_launch* l, weft_error* e) {
  if (host_memory()) return launch(l, e);
  Mirrors mirrors(*this, l);
  if (const weft_code code = mirrors.read(e); code != WEFT_OK) return code;
  const weft_code code = launch(mirrors.launch(), e);
  weft_error other{.size = sizeof other, .text = {}};
  const weft_code back = mirrors.write(&other);
  return code == WEFT_OK && back != WEFT_OK ? backend::fill(e, back, std::string(other.text)) : code;
}

weft_code Mirrored::launch(const weft_launch* l, weft_error* e) {
  return host_memory() ? Wrapped::launch(l, e) : Mirrors::of_this_thread()->launch_on_device(l, e);
}

weft_code Mirrored::allocate(weft_device d, uint64_t bytes, void** handle, weft_error* e) {
  const weft_code code = Wrapped::allocate(d, bytes, handle, e);
  if (code != WEFT_OK || host_memory()) return code;
  const std::lock_guard lock(mutex_);
  sizes_[*handle] = bytes;
  return code;
}
void Mirrored::free(weft_device d, void* handle) {
  {
    const std::lock_guard lock(mutex_);
    sizes_.erase(handle);
  }
  Wrapped::free(d, handle);
}
uint64_t Mirrored::size_of(void* handle) {
  const std::lock_guard lock(mutex_);
  const auto at = sizes_.find(handle);
  return at == sizes_.end() ? 0 : at->second;
}

Mirrored::Place Mirrored::place_of(const weft_launch* l, const weft_tensor* t) const {
  if (!host_memory()) return Mirrors::of_this_thread()->place_of(t);
  return {l->device, t->dl.data, t->dl.byte_offset};
}

void Mirrored::write(const Place& to, std::span<const char> bytes) {
  if (host_memory()) {
    std::ranges::copy(bytes, static_cast<char*>(to.handle) + to.offset);
    return;
  }
  weft_error e{.size = sizeof e, .text = {}};
  weft_queue q = nullptr;
  if (inner().open_queue(to.device, &q, &e) != WEFT_OK) return;
  (void)Mirrors::copy_bytes(*this, q, to.handle, to.offset, bytes.size(), bytes.data(), nullptr, &e);
  (void)inner().synchronize(q, &e);
  inner().close_queue(q);
}

}  // namespace weft::conformance
