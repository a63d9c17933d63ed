#pragma once
#include <atomic>
#include <memory>

#include "seam/device.h"
#include "weft/tensor.h"

namespace weft::eager {

struct TapeNode;

inline constexpr int kMaxRank = 8;

/// What only some tensors have: kept apart, so that making a plain result touches two cache lines less.
struct Extra {
  std::string name;
  Tensor grad;
  std::shared_ptr<TapeNode> node;  // that made this tensor; null for a leaf
  uint32_t output = 0;             // which of its results this is
  Shape symbolic;                  // of a traced tensor
  IntList strides;                 // of an irregular one, in elements
};

struct TensorImpl {
  std::atomic<uint32_t> references{1};
  DType dtype = DType::f32;
  uint8_t rank = 0;
  bool requires_grad = false;
  bool traced = false;     // holds a graph value instead of elements
  bool irregular = false;  // imported, with strides: not row-major without gaps
  int32_t traced_value = -1;
  uint64_t trace = 0;      // which trace the value belongs to
  uint64_t signature = 0;  // what a plan depends on besides the dims: dtype, rank, device, strides
  seam::BufferRef buffer;
  seam::Device* device =
      nullptr;  // whose kernels are asked: a device that the buffer's memory is shared with
  weft_tensor c = {.dl = {.shape = dims, .strides = nullptr, .byte_offset = 0},  // what launches are given
                   .size = sizeof(weft_tensor),
                   .layout = 0,
                   .logical_shape = nullptr,
                   .alignment = 64};
  int64_t dims[kMaxRank];
  std::unique_ptr<Extra> extra;
  TensorImpl* next = nullptr;  // in the free list

  std::span<const int64_t> shape() const { return {dims, rank}; }
  Extra& more() {
    if (!extra) extra = std::make_unique<Extra>();
    return *extra;
  }
  uint64_t bytes() const { return static_cast<uint64_t>(element_count(shape())) * byte_size(dtype); }
};

/// A fresh result of this type on `buffer`, memory of `device`; without memory inside a trace.
TensorImpl* make_impl(DType dtype, std::span<const int64_t> shape, seam::BufferRef buffer,
                      seam::Device* device);
/// A fresh tensor with uninitialised elements. Raises when memory runs out.
Tensor make_tensor(seam::Device& device, DType dtype, std::span<const int64_t> shape);
/// Another handle on the same elements (or graph value), with its own shape and no gradient.
Tensor alias(const Tensor& t);
/// The same, of other dimensions.
Tensor viewed(const Tensor& t, const Shape& shape);
/// A tensor of its own with the same elements, on the same device.
Tensor copy_of(const Tensor& t);
Tensor make_traced(const TensorType& type, int32_t value, uint64_t trace);

inline seam::Device& device_of(const TensorImpl& t) { return *t.device; }
seam::Device& default_device();

/// While it lives, this thread's tensors that no operand places are made on `device`.
class OnDevice {
 public:
  explicit OnDevice(seam::Device& device);
  ~OnDevice();

 private:
  seam::Device* before_;
};

/// The same elements row-major, in memory of their own: of an irregular tensor, for kernels that refuse it.
Tensor regular_copy(const Tensor& t);

/// Waits for eager work on the tensor's device and copies its bytes out.
Status read(const Tensor& t, void* to);
/// `t` on `device`: a copy, entered in the ledger, or the same elements where the memory is shared.
Result<Tensor> copy_to(const Tensor& t, seam::Device& device);

}  // namespace weft::eager
