#include "weft/tensor.h"

#include <cmath>
#include <optional>

#include "base/element.h"
#include "eager/layout.h"
#include "eager/tape.h"
#include "eager/trace_state.h"
#include "seam/ledger.h"
#include "seam/registry.h"
#include "seam/transfer.h"
#include "weft/ops.h"
#include "weft/pieces.h"

namespace weft {
namespace eager {
namespace {

// Every op creates tensor headers, so each thread has a free list. The list is trivially constructed, since
// every access would check otherwise; a separate object frees it.
struct ImplPool {
  TensorImpl* head = nullptr;
  uint32_t count = 0;
  bool gone = false;
};
constinit thread_local ImplPool impl_pool;

struct ImplPoolEnd {
  void begin() {}  // a use, so that it exists
  ~ImplPoolEnd() {
    impl_pool.gone = true;
    while (TensorImpl* t = impl_pool.head) {
      impl_pool.head = t->next;
      delete t;
    }
  }
};
thread_local ImplPoolEnd impl_pool_end;

constexpr uint32_t kKept = 4096;

}  // namespace

TensorImpl* make_impl(DType dtype, std::span<const int64_t> shape, seam::BufferRef buffer,
                      seam::Device* device) {
  auto& pool = impl_pool;
  TensorImpl* t = pool.head;
  if (t) {
    pool.head = t->next, --pool.count;
    t->references.store(1, std::memory_order_relaxed);
  } else {
    t = new TensorImpl;
  }
  const auto rank = static_cast<uint8_t>(shape.size());
  t->dtype = dtype, t->rank = rank;
  for (size_t i = 0; i < shape.size(); ++i) t->dims[i] = shape[i];
  const auto& i = info(dtype);
  DLTensor& dl = t->c.dl;
  dl.ndim = rank, dl.dtype = {i.dlpack_code, static_cast<uint8_t>(8 * i.bytes), 1};
  t->signature = uint64_t(dtype) | uint64_t{rank} << 8;
  dl.data = nullptr;
  if (const seam::Buffer* b = buffer.get()) {
    dl.data = b->handle, dl.device = device->dl();
    t->c.alignment = b->alignment();
    t->signature |= uint64_t{device->index()} << 16;
  }
  t->buffer = std::move(buffer), t->device = device;
  return t;
}

void retain(TensorImpl* t) { t->references.fetch_add(1, std::memory_order_relaxed); }

void release(TensorImpl* t) {
  if (t->references.load(std::memory_order_acquire) != 1 &&
      t->references.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  t->buffer = seam::BufferRef();
  t->extra.reset();
  t->requires_grad = t->traced = false;
  if (t->irregular) [[unlikely]]
    t->irregular = false, t->c.dl.strides = nullptr;  // an import may have set them
  auto& pool = impl_pool;
  if (pool.gone || pool.count >= kKept) {
    delete t;
    return;
  }
  if (pool.count == 0) impl_pool_end.begin();
  t->next = pool.head, pool.head = t, ++pool.count;
}

Tensor make_tensor(seam::Device& device, DType dtype, std::span<const int64_t> shape) {
  if (shape.size() > kMaxRank)
    throw Error(invalid("rank {} is above the limit of {}", shape.size(), kMaxRank));
  for (const int64_t d : shape)
    if (d < 0) throw Error(invalid("a dimension must not be negative, got {}", text(shape)));
  uint64_t bytes = byte_size(dtype);
  for (const int64_t d : shape)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(d), &bytes))
      throw Error(invalid("{}{} has more bytes than a number holds", weft::name(dtype), text(shape)));
  return Tensor(make_impl(dtype, shape, value_or_raise(device.allocate(bytes)), &device));
}

Tensor make_traced(const TensorType& type, int32_t value, uint64_t trace) {
  Tensor t(make_impl(type.dtype, {}, {}, nullptr));
  auto* impl = t.impl();
  impl->traced = true, impl->traced_value = value, impl->trace = trace;
  impl->rank = static_cast<uint8_t>(type.rank());
  impl->more().symbolic = type.shape;
  return t;
}

Tensor alias(const Tensor& t) {
  const auto& from = *t.impl();
  if (from.traced) return make_traced(t.type(), from.traced_value, from.trace);
  Tensor same(make_impl(from.dtype, from.shape(), from.buffer, from.device));
  if (from.irregular) set_strides(same, from.extra->strides);
  return same;
}

Tensor viewed(const Tensor& t, const Shape& shape) {
  SmallVector<int64_t, kMaxRank> dims;
  for (const Dim d : shape) dims.push_back(d.value());
  return Tensor(make_impl(t.impl()->dtype, dims, t.impl()->buffer, t.impl()->device));
}

Tensor copy_of(const Tensor& t) {
  const auto& from = *t.impl();
  if (from.irregular) return regular_copy(t);
  auto& device = device_of(from);
  Tensor y = make_tensor(device, from.dtype, from.shape());
  std::lock_guard lock(device.eager_mutex());
  raise_if(device.eager_queue().copy(*y.impl()->buffer.get(), 0, *from.buffer.get(), from.c.dl.byte_offset,
                                     from.bytes()));
  return y;
}

namespace {
thread_local seam::Device* forced_device = nullptr;
}
OnDevice::OnDevice(seam::Device& device) : before_(forced_device) { forced_device = &device; }
OnDevice::~OnDevice() { forced_device = before_; }

seam::Device& default_device() {
  if (forced_device) return *forced_device;
  thread_local std::string name;
  thread_local seam::Device* device = nullptr;
  if (const auto wanted = default_backend(); !device || wanted != name)
    device = value_or_raise(seam::registry().open(wanted)), name = wanted;
  return *device;
}

static Status unreadable() {
  return invalid("the elements of a tensor can't be read inside a trace; return it as an output instead");
}

Status read(const Tensor& t, void* to) {
  const auto& impl = *t.impl();
  if (impl.traced || active_trace()) return unreadable();
  if (impl.irregular) return read_rows(t, static_cast<std::byte*>(to));
  auto& device = device_of(impl);
  std::lock_guard lock(device.eager_mutex());
  WEFT_CHECK(device.eager_queue().copy_out(to, *impl.buffer.get(), impl.c.dl.byte_offset, impl.bytes()));
  return device.eager_queue().synchronize();
}

Result<Tensor> copy_to(const Tensor& t, seam::Device& device) {
  const TensorImpl& impl = *t.impl();
  if (impl.traced) return unreadable();
  seam::Device& from = device_of(impl);
  if (&from == &device) return t;
  if (active_trace()) return unreadable();
  if (impl.irregular) return copy_to(regular_copy(t), device);
  if (from.shares_memory(device)) return Tensor(make_impl(t.dtype(), impl.shape(), impl.buffer, &device));
  WEFT_TRY(auto buffer, device.allocate(impl.bytes()));
  {
    const std::scoped_lock lock(from.eager_mutex(), device.eager_mutex());
    WEFT_CHECK(seam::transfer(from.eager_queue(), {*impl.buffer.get(), impl.c.dl.byte_offset},
                              device.eager_queue(), {*buffer.get()}, impl.bytes()));
    WEFT_CHECK(from.eager_queue().synchronize());  // reports failures of the ops that made it
  }
  seam::ledger().copied(from.name(), device.name(), impl.bytes());
  return Tensor(make_impl(t.dtype(), impl.shape(), std::move(buffer), &device));
}

static seam::Device& device_or_default(const std::string& backend) {
  return backend.empty() ? default_device() : *value_or_raise(seam::registry().open(backend));
}

}  // namespace eager

using namespace eager;

// Any use of a default-constructed Tensor ends here; the most common is w.grad() before backward().
static TensorImpl& there(TensorImpl* impl) {
  if (!impl)
    throw Error(
        invalid("the tensor is empty: it was default-made, or is a gradient that backward() did not set"));
  return *impl;
}

Tensor Tensor::from_bytes(std::span<const std::byte> bytes, std::span<const int64_t> shape, DType dtype,
                          const std::string& backend) {
  auto& device = device_or_default(backend);
  Tensor t = make_tensor(device, dtype, shape);
  if (bytes.size() != t.impl()->bytes())
    throw Error(invalid("{}{} has {} bytes, got {}", weft::name(dtype), text(shape), t.impl()->bytes(),
                        bytes.size()));
  std::lock_guard lock(device.eager_mutex());
  raise_if(device.eager_queue().copy_in(*t.impl()->buffer.get(), 0, bytes.data(), bytes.size()));
  return t;
}

Tensor tensor_from_pieces(const FillPiece& fill, std::span<const int64_t> shape, DType dtype,
                          const std::string& backend) {
  constexpr size_t kPiece = size_t{1} << 20;
  auto& device = device_or_default(backend);
  Tensor t = make_tensor(device, dtype, shape);
  const size_t all = t.impl()->bytes();
  if (all == 0) return t;
  const auto slices = static_cast<size_t>(shape.empty() ? 1 : shape[0]);
  const size_t slice = all / slices, each = std::max<size_t>(1, kPiece / slice);
  std::vector<std::byte> piece(std::min(slices, each) * slice);
  for (size_t first = 0; first < slices; first += each) {
    const auto part = std::span(piece).first(std::min(each, slices - first) * slice);
    fill(static_cast<int64_t>(first), part);
    std::lock_guard lock(device.eager_mutex());
    raise_if(device.eager_queue().copy_in(*t.impl()->buffer.get(), first * slice, part.data(), part.size()));
  }
  return t;
}

const void* memory_of(const Tensor& t) { return there(t.impl()).buffer.get(); }

template <class T>
Tensor Tensor::of(std::span<const T> elements, std::span<const int64_t> shape, DType dtype,
                  const std::string& backend) {
  uint64_t wanted = 1;
  bool counted = true;  // invalid shapes are refused below
  for (const int64_t d : shape)
    counted = counted && d >= 0 && !__builtin_mul_overflow(wanted, static_cast<uint64_t>(d), &wanted);
  if (counted && wanted != elements.size())
    throw Error(
        invalid("{}{} has {} elements, got {}", weft::name(dtype), text(shape), wanted, elements.size()));
  std::vector<std::byte> bytes(elements.size() * byte_size(dtype));
  for (size_t i = 0; i < elements.size(); ++i)
    store_element(dtype, bytes.data(), i, static_cast<shared::Wide<T>>(elements[i]));
  return from_bytes(bytes, shape, dtype, backend);
}

// Converts a C++ number to an element; an error if the dtype can't hold it.
static void check_number(const char* where, double value, DType dtype) {
  if (may_stand_for(dtype, value)) return;
  throw Error(cannot_hold(where, dtype, value));
}

Tensor Tensor::of(std::initializer_list<double> elements, std::initializer_list<int64_t> shape, DType dtype) {
  for (const double e : elements) check_number("Tensor::of", e, dtype);
  return of(std::span<const double>(elements.begin(), elements.size()),
            std::span<const int64_t>(shape.begin(), shape.size()), dtype);
}

Tensor Tensor::scalar(double value, DType dtype) {
  check_number("Tensor::scalar", value, dtype);
  return of(std::span<const double>(&value, 1), {}, dtype);
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  const auto bytes = to_bytes();
  std::vector<T> out(bytes.size() / byte_size(dtype()));
  for (size_t i = 0; i < out.size(); ++i) {
    if constexpr (std::is_same_v<T, bool>)
      out[i] = load_element<double>(dtype(), bytes.data(), i) != 0;
    else
      out[i] = load_element<T>(dtype(), bytes.data(), i);
  }
  return out;
}

#define WEFT_ELEMENT(T)                                                                                   \
  template Tensor Tensor::of<T>(std::span<const T>, std::span<const int64_t>, DType, const std::string&); \
  template std::vector<T> Tensor::to_vector<T>() const;
WEFT_ELEMENT(float)
WEFT_ELEMENT(double)
WEFT_ELEMENT(bool)
WEFT_ELEMENT(signed char)
WEFT_ELEMENT(unsigned char)
WEFT_ELEMENT(short)
WEFT_ELEMENT(unsigned short)
WEFT_ELEMENT(int)
WEFT_ELEMENT(unsigned)
WEFT_ELEMENT(long)
WEFT_ELEMENT(unsigned long)
WEFT_ELEMENT(long long)
WEFT_ELEMENT(unsigned long long)
#undef WEFT_ELEMENT

std::vector<std::byte> Tensor::to_bytes() const {
  std::vector<std::byte> bytes(there(impl_).traced ? 0 : there(impl_).bytes());
  raise_if(read(*this, bytes.data()));
  return bytes;
}

double Tensor::item() const {
  const auto all = to_vector<double>();
  if (all.size() != 1) throw Error(invalid("item() wants one element, {} has {}", text(type()), all.size()));
  return all[0];
}

Tensor Tensor::to(const std::string& backend) const {
  if (there(impl_).traced) throw Error(invalid("a tensor inside a trace has no backend to leave"));
  return value_or_raise(copy_to(*this, *value_or_raise(seam::registry().open(backend))));
}

DType Tensor::dtype() const { return there(impl_).dtype; }
Shape Tensor::shape() const {
  return there(impl_).traced ? there(impl_).extra->symbolic : to_shape(there(impl_).shape());
}
IntList Tensor::sizes() const {
  IntList out;
  for (const Dim d : shape()) {
    if (!d.is_const()) throw Error(invalid("dimension {} of {} is symbolic here", d.text(), text(type())));
    out.push_back(d.value());
  }
  return out;
}
Dim Tensor::dim(int64_t axis) const {
  const auto s = shape();
  const int64_t at = axis < 0 ? axis + rank() : axis;
  if (at < 0 || at >= rank()) throw Error(invalid("dim({}) of {}", axis, text(type())));
  return s[static_cast<size_t>(at)];
}
int64_t Tensor::rank() const { return there(impl_).rank; }
TensorType Tensor::type() const { return {dtype(), shape()}; }
std::string Tensor::backend() const { return there(impl_).traced ? "trace" : device_of(there(impl_)).name(); }

Tensor& Tensor::named(std::string name) {
  there(impl_).more().name = std::move(name);
  return *this;
}
const std::string& Tensor::name() const {
  static const std::string none;
  return there(impl_).extra ? there(impl_).extra->name : none;
}

bool Tensor::requires_grad() const { return there(impl_).requires_grad; }
Tensor& Tensor::requires_grad(bool on) {
  if (on && !is_float(dtype())) throw Error(invalid("{} can't have a gradient", text(type())));
  there(impl_).requires_grad = on;
  if (on) impl_->more();  // before threads share it
  return *this;
}
Tensor Tensor::grad() const { return there(impl_).extra ? there(impl_).extra->grad : Tensor(); }
void Tensor::clear_grad() {
  if (there(impl_).extra) there(impl_).extra->grad = Tensor();
}
void Tensor::backward() const { backward(Tensor()); }
void Tensor::backward(const Tensor& seed, bool create_graph, bool keep) const {
  raise_if(eager::backward(*this, seed, create_graph, keep));
}
Tensor Tensor::detach() const { return there(impl_), alias(*this); }

static Tensor like(const char* op, const Tensor& a, double b) {
  check_number(op, b, a.dtype());
  std::optional<OnDevice> there;
  if (!a.impl()->traced) there.emplace(device_of(*a.impl()));
  return full(b, {}, a.dtype());
}
Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
Tensor operator+(const Tensor& a, double b) { return add(a, like("tensor + number", a, b)); }
Tensor operator-(const Tensor& a, double b) { return sub(a, like("tensor - number", a, b)); }
Tensor operator*(const Tensor& a, double b) { return mul(a, like("tensor * number", a, b)); }
Tensor operator/(const Tensor& a, double b) { return div(a, like("tensor / number", a, b)); }

}  // namespace weft
