#pragma once
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "weft/backend/base.hpp"

// Views of calls and launches that look like the types they stand for.
namespace weft::backend {

// ---- what is asked: calls
// ---------------------------------------------------------------------------------------

/// One dimension of an operand: the range of sizes that it may have.
struct Dim {
  int64_t least, most;
  int64_t min() const { return least; }
  int64_t max() const { return most; }
  bool known() const { return least == most; }
};

/// The shape of an operand, as ranges.
class ShapeView {
 public:
  ShapeView(const int64_t* min, const int64_t* max, int64_t rank) : min_(min), max_(max), rank_(rank) {}
  int64_t size() const { return rank_; }
  Dim operator[](int64_t i) const { return {min_[i], max_[i]}; }
  Dim front() const { return (*this)[0]; }
  Dim back() const { return (*this)[rank_ - 1]; }

 private:
  const int64_t *min_, *max_;
  int64_t rank_;
};

/// The type of one operand of a call. Ask `has()` first where an operand may be absent.
class TypeView {
 public:
  explicit TypeView(const weft_type* type) : type_(type) {}
  bool has() const { return type_ != nullptr; }
  int64_t rank() const { return type_->rank; }
  ShapeView shape() const { return {type_->min, type_->max, type_->rank}; }
  std::span<const int64_t> max() const { return {type_->max, static_cast<size_t>(type_->rank)}; }
  uint32_t layout() const { return read(type_, &weft_type::layout); }
  const int64_t* strides() const { return read(type_, &weft_type::strides); }
  uint64_t alignment() const { return read(type_, &weft_type::alignment); }
  /// Whether it holds the same bytes in every launch of the plan, so that it may be packed.
  bool constant() const { return read(type_, &weft_type::constant) != 0; }
  /// Ids of the packings that the host has already of this constant.
  std::span<const char* const> packings() const {
    return {read(type_, &weft_type::packings), read(type_, &weft_type::n_packings)};
  }
  /// Nothing where the type is not one of weft/dtype.h.
  std::optional<DType> known_dtype() const {
    return type_->dtype.lanes == 1 ? dtype_from_dlpack(type_->dtype.code, type_->dtype.bits) : std::nullopt;
  }
  DType dtype() const { return known_dtype().value_or(DType::u8); }
  /// Row-major without gaps, whatever strides are given for axes of size one or an empty tensor.
  bool contiguous() const {
    if (strides() == nullptr) return true;
    int64_t expected = 1;
    for (int64_t i = rank() - 1; i >= 0; --i) {
      if (type_->max[i] != 1 && strides()[i] != expected) return false;
      expected *= type_->max[i];
    }
    return true;
  }

 private:
  const weft_type* type_;
};

/// One attribute of a call, or the lack of it: each getter takes what stands for a missing one.
class AttrView {
 public:
  explicit AttrView(const weft_attr* attr) : attr_(attr) {}
  bool has() const { return attr_ != nullptr; }
  int64_t integer(int64_t missing = 0) const {
    if (attr_ == nullptr) return missing;
    if (attr_->kind == WEFT_ATTR_INTS) return attr_->n > 0 ? attr_->ints[0] : missing;
    return attr_->kind == WEFT_ATTR_INT ? attr_->i : missing;
  }
  double real(double missing = 0) const {
    if (attr_ == nullptr) return missing;
    if (attr_->kind == WEFT_ATTR_INT) return static_cast<double>(attr_->i);
    return attr_->kind == WEFT_ATTR_FLOAT ? attr_->f : missing;
  }
  std::span<const int64_t> ints() const {
    if (attr_ == nullptr) return {};
    if (attr_->kind == WEFT_ATTR_INT) return {&attr_->i, 1};
    return attr_->kind == WEFT_ATTR_INTS ? std::span(attr_->ints, attr_->n) : std::span<const int64_t>();
  }
  std::string_view text(std::string_view missing = {}) const {
    const bool fits = attr_ != nullptr && (attr_->kind == WEFT_ATTR_STRING || attr_->kind == WEFT_ATTR_BYTES);
    return fits ? std::string_view(attr_->bytes, attr_->n) : missing;
  }
  operator int64_t() const { return integer(); }

 private:
  const weft_attr* attr_;
};

/// A view of a call: what is asked of a kernel.
class OpCall {
 public:
  explicit OpCall(const weft_call* call) : call_(call) {}
  std::string_view op() const { return call_->op; }
  int64_t n_inputs() const { return call_->n_inputs; }
  int64_t n_outputs() const { return call_->n_outputs; }
  TypeView input(int64_t i) const { return TypeView(i < n_inputs() ? call_->inputs[i] : nullptr); }
  TypeView output(int64_t i) const { return TypeView(i < n_outputs() ? call_->outputs[i] : nullptr); }
  AttrView attr(std::string_view name) const {
    for (uint32_t i = 0; i < call_->n_attrs; ++i)
      if (name == call_->attrs[i]->name) return AttrView(call_->attrs[i]);
    return AttrView(nullptr);
  }
  bool accumulates(int64_t output) const { return read(call_, &weft_call::accumulate) >> output & 1; }
  uint64_t accumulate() const { return read(call_, &weft_call::accumulate); }
  uint64_t updates() const { return read(call_, &weft_call::updates); }
  uint32_t determinism() const { return call_->determinism; }
  uint32_t precision() const { return read(call_, &weft_call::precision); }
  const weft_region* region() const { return read(call_, &weft_call::region); }
  const weft_call* raw() const { return call_; }

 private:
  const weft_call* call_;
};

// ---- what is run: launches
// --------------------------------------------------------------------------------------

/// A tensor of a launch, in memory that the host may address.
class TensorView {
 public:
  explicit TensorView(const weft_tensor* tensor) : tensor_(tensor) {}
  bool has() const { return tensor_ != nullptr; }
  int64_t rank() const { return tensor_->dl.ndim; }
  std::span<const int64_t> dims() const { return {tensor_->dl.shape, static_cast<size_t>(rank())}; }
  int64_t dim(int64_t i) const { return tensor_->dl.shape[i]; }
  int64_t size() const {
    int64_t n = 1;
    for (const int64_t d : dims()) n *= d;
    return n;
  }
  DType dtype() const {
    return dtype_from_dlpack(tensor_->dl.dtype.code, tensor_->dl.dtype.bits).value_or(DType::u8);
  }
  int64_t bytes() const { return size() * static_cast<int64_t>(byte_size(dtype())); }
  /// The first element. Only where data is a host address.
  template <class T = char>
  T* data() const {
    return reinterpret_cast<T*>(static_cast<char*>(tensor_->dl.data) + tensor_->dl.byte_offset);
  }
  uint32_t layout() const { return read(tensor_, &weft_tensor::layout); }
  const weft_tensor* raw() const { return tensor_; }

 private:
  const weft_tensor* tensor_;
};

/// A launch as its kernel sees it.
class Launch {
 public:
  Launch(const weft_launch* launch, Host host) : launch_(launch), host_(host) {}
  OpCall call() const { return OpCall(launch_->plan->call); }
  TensorView input(int64_t i) const { return TensorView(launch_->inputs[i]); }
  TensorView output(int64_t i) const { return TensorView(launch_->outputs[i]); }
  TensorView workspace() const { return TensorView(read(launch_, &weft_launch::workspace)); }
  const Host& host() const { return host_; }
  const weft_launch* raw() const { return launch_; }

 private:
  const weft_launch* launch_;
  Host host_;
};

/// A deep copy of a launch's tensors, for queues that run later and for sequences. `data_of` gives each
/// tensor the data pointer that the kernel is to see. Plan and call are the host's and live until the queue
/// has passed.
class LaunchCopy {
 public:
  template <class DataOf>
  LaunchCopy(const weft_launch* from, DataOf&& data_of) : launch_(*from) {
    const weft_call* call = from->plan->call;
    const weft_tensor* workspace = read(from, &weft_launch::workspace);
    auto add = [&](const weft_tensor* t) -> const weft_tensor* {
      if (t == nullptr) return nullptr;
      const Tensor& kept = tensors_.emplace_back(t, data_of(*t));
      return &kept.tensor;
    };
    for (uint32_t i = 0; i < call->n_inputs; ++i) inputs_.push_back(add(from->inputs[i]));
    for (uint32_t i = 0; i < call->n_outputs; ++i) outputs_.push_back(add(from->outputs[i]));
    launch_.size = sizeof(weft_launch);
    launch_.inputs = inputs_.data();
    launch_.outputs = outputs_.data();
    launch_.workspace = add(workspace);
  }
  LaunchCopy(const LaunchCopy&) = delete;
  LaunchCopy& operator=(const LaunchCopy&) = delete;
  const weft_launch* get() const { return &launch_; }

 private:
  struct Tensor {
    Tensor(const weft_tensor* from, void* data) : tensor(*from) {
      auto keep = [](std::vector<int64_t>& to, const int64_t* values, int64_t n) {
        if (values != nullptr) to.assign(values, values + n);
        return values != nullptr ? to.data() : nullptr;
      };
      tensor.dl.data = data;
      tensor.dl.shape = keep(shape, from->dl.shape, from->dl.ndim);
      tensor.dl.strides = keep(strides, from->dl.strides, from->dl.ndim);
      tensor.logical_shape = keep(logical, read(from, &weft_tensor::logical_shape), from->dl.ndim);
    }
    weft_tensor tensor;
    std::vector<int64_t> shape, strides, logical;
  };
  weft_launch launch_;
  std::deque<Tensor> tensors_;
  std::vector<const weft_tensor*> inputs_, outputs_;
};

}  // namespace weft::backend
