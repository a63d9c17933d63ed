#include "eager/layout.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "seam/ledger.h"

namespace weft::eager {
namespace {

// Strides are numbered from 1, equal ones alike: the number fits a signature, next to dtype, rank and device.
uint64_t number_of(const IntList& strides) {
  static std::mutex mutex;
  static std::map<std::vector<int64_t>, uint64_t> numbers;
  const std::lock_guard lock(mutex);
  return numbers.try_emplace({strides.begin(), strides.end()}, numbers.size() + 1).first->second;
}

/// Copies strided elements to contiguous memory.
struct Walk {
  std::span<const int64_t> shape, strides;
  size_t bytes;  // of an element

  // Appends the elements below axis `d` that begin at `from`.
  void gather(size_t d, const std::byte* from, std::byte*& to) const {
    if (d == shape.size()) {
      std::memcpy(to, from, bytes), to += bytes;
    } else if (d + 1 == shape.size() && strides[d] == 1) {
      std::memcpy(to, from, bytes * static_cast<size_t>(shape[d])),
          to += bytes * static_cast<size_t>(shape[d]);
    } else {
      for (int64_t i = 0; i < shape[d]; ++i)
        gather(d + 1, from + static_cast<size_t>(i * strides[d]) * bytes, to);
    }
  }
};

}  // namespace

void set_strides(Tensor& t, IntList strides) {
  TensorImpl& impl = *t.impl();
  impl.signature |= number_of(strides) << 40;
  impl.more().strides = std::move(strides);
  impl.irregular = true, impl.c.dl.strides = impl.extra->strides.data();
}

std::optional<uint64_t> span_of(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  uint64_t last = 0, step = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(shape[d] - 1), static_cast<uint64_t>(strides[d]),
                               &step) ||
        __builtin_add_overflow(last, step, &last))
      return std::nullopt;
  }
  return last + 1;
}

bool row_major(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  if (std::ranges::find(shape, 0) != shape.end()) return true;
  int64_t expected = 1;
  for (size_t d = shape.size(); d-- > 0; expected *= shape[d])
    if (shape[d] != 1 && strides[d] != expected) return false;
  return true;
}

Status read_rows(const Tensor& t, std::byte* to) {
  const TensorImpl& impl = *t.impl();
  const size_t bytes = byte_size(impl.dtype);
  auto& device = device_of(impl);
  // The host reads what is between the elements of its own memory no more than it must.
  if (device.host_memory()) {
    const std::lock_guard lock(device.eager_mutex());
    WEFT_CHECK(device.eager_queue().synchronize());
    const auto* from = static_cast<const std::byte*>(impl.c.dl.data) + impl.c.dl.byte_offset;
    if (impl.bytes()) Walk{impl.shape(), impl.extra->strides, bytes}.gather(0, from, to);
    return {};
  }
  std::vector<std::byte> all(*span_of(impl.shape(), impl.extra->strides) * bytes);
  {
    std::lock_guard lock(device.eager_mutex());
    WEFT_CHECK(
        device.eager_queue().copy_out(all.data(), *impl.buffer.get(), impl.c.dl.byte_offset, all.size()));
    WEFT_CHECK(device.eager_queue().synchronize());
  }
  if (!all.empty()) Walk{impl.shape(), impl.extra->strides, bytes}.gather(0, all.data(), to);
  return {};
}

Tensor regular_copy(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  std::vector<std::byte> rows(impl.bytes());
  raise_if(read_rows(t, rows.data()));
  const std::string& device = device_of(impl).name();
  seam::ledger().copied(device, device, rows.size());
  return Tensor::from_bytes(rows, impl.shape(), impl.dtype, device);
}

}  // namespace weft::eager
