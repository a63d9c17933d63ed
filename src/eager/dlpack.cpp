#include "weft/dlpack.h"

#include <algorithm>

#include "eager/layout.h"
#include "eager/trace_state.h"
#include "seam/registry.h"

namespace weft {
namespace eager {
namespace {

/// The validated contents of a DLTensor.
struct Import {
  DType dtype = DType::f32;
  IntList shape, strides;
  uint64_t bytes = 0;  // from the first element to the end of the last
  bool row_major = true;
};

Result<Import> looked_at(const DLTensor& t) {
  const auto dtype = dtype_from_dlpack(t.dtype.code, t.dtype.bits);
  if (!dtype || t.dtype.lanes != 1)
    return invalid("from_dlpack: no dtype has DLPack's code {}, {} bits and {} lanes", t.dtype.code,
                   t.dtype.bits, t.dtype.lanes);
  if (t.ndim < 0 || t.ndim > kMaxRank)
    return invalid("from_dlpack: rank {} is above the limit of {}", t.ndim, kMaxRank);
  if (t.ndim > 0 && !t.shape) return invalid("from_dlpack: the exporter gives rank {} and no shape", t.ndim);
  Import in{.dtype = *dtype, .shape = IntList(t.shape, t.shape + t.ndim), .strides = {}};
  uint64_t bytes = byte_size(*dtype);
  for (const int64_t d : in.shape)
    if (d < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(std::max<int64_t>(d, 1)), &bytes))
      return invalid("from_dlpack: {} is no shape of a tensor", text(std::span<const int64_t>(in.shape)));
  in.strides = t.strides ? IntList(t.strides, t.strides + t.ndim) : contiguous_strides(in.shape);
  for (size_t d = 0; d < in.shape.size(); ++d) {
    if (in.shape[d] <= 1) in.strides[d] = 0;  // unused
    if (in.strides[d] < 0)
      return invalid("from_dlpack: strides {}: none may be negative; copy it first",
                     text(std::span<const int64_t>(in.strides)));
  }
  const auto span = span_of(in.shape, in.strides);
  constexpr uint64_t kAddresses = uint64_t{1} << 57;  // no processor has more
  if (!span || __builtin_mul_overflow(*span, byte_size(*dtype), &in.bytes) || in.bytes > kAddresses)
    return invalid("from_dlpack: strides {} reach beyond what 64 bits count",
                   text(std::span<const int64_t>(in.strides)));
  in.row_major = row_major(in.shape, in.strides);
  return in;
}

// Host memory that is not aligned to its elements: no kernel reads it.
Status aligned(const DLTensor& t, DType dtype) {
  const uint64_t at =
      t.byte_offset + (t.device.device_type == kDLCPU ? reinterpret_cast<uintptr_t>(t.data) : 0);
  if (at % byte_size(dtype) == 0) return {};
  return invalid(
      "from_dlpack: the elements of {} begin at an address that is no multiple of {}; copy it first",
      weft::name(dtype), byte_size(dtype));
}

void end(DLManagedTensor* managed) {
  if (managed->deleter) managed->deleter(managed);
}

/// The owner of an export.
struct Export {
  DLManagedTensor managed{};
  Tensor tensor;
  IntList shape, strides;
};

}  // namespace
}  // namespace eager

using namespace eager;

Tensor from_dlpack(DLManagedTensor* managed, const std::string& backend) {
  if (!managed) throw Error(invalid("from_dlpack: there is no tensor"));
  const DLTensor& dl = managed->dl_tensor;
  Import in = value_or_raise(looked_at(dl));
  auto& device = backend.empty() ? default_device() : *value_or_raise(seam::registry().open(backend));
  if (in.bytes == 0) {
    Tensor none = make_tensor(device, in.dtype, in.shape);
    end(managed);
    return none;
  }
  if (!dl.data) throw Error(invalid("from_dlpack: the exporter has no memory for its {} bytes", in.bytes));
  raise_if(aligned(dl, in.dtype));
  auto buffer = device.import_memory(dl, in.bytes, [managed] { end(managed); });
  if (!buffer.ok()) throw Error(buffer.take_status().at("from_dlpack"));
  Tensor t(make_impl(in.dtype, in.shape, std::move(buffer).value(), &device));
  if (!in.row_major) set_strides(t, std::move(in.strides));
  return t;
}

DLManagedTensor* to_dlpack(const Tensor& tensor) {
  if (!tensor) throw Error(invalid("to_dlpack: the tensor is empty"));
  const TensorImpl& impl = *tensor.impl();
  if (impl.traced || active_trace())
    throw Error(invalid("to_dlpack: a tensor has no memory inside a trace; return it as an output instead"));
  if (impl.requires_grad)
    throw Error(
        invalid("to_dlpack: the tensor requires a gradient, which would not see what others write; "
                "detach() it first"));
  auto& device = device_of(impl);
  {
    const std::lock_guard lock(device.eager_mutex());
    raise_if(device.eager_queue().synchronize());
  }
  auto* out = new Export;
  out->tensor = tensor;
  out->shape = IntList(impl.dims, impl.dims + impl.rank);
  out->strides = impl.irregular ? impl.extra->strides : contiguous_strides(impl.shape());
  out->managed.dl_tensor = impl.c.dl;
  out->managed.dl_tensor.shape = out->shape.data(), out->managed.dl_tensor.strides = out->strides.data();
  out->managed.manager_ctx = out;
  out->managed.deleter = [](DLManagedTensor* m) { delete static_cast<Export*>(m->manager_ctx); };
  return &out->managed;
}

}  // namespace weft
