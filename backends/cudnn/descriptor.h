#pragma once
#include <utility>
#include <vector>

#include "library.h"

// The objects of cuDNN's graph API.
namespace weft::cudnn {

/// An object that is made, filled and finalized. It throws Failure where cuDNN refuses.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor&& other) noexcept : made_(std::exchange(other.made_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(made_, other.made_);
    return *this;
  }
  ~Descriptor();

  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set(name, kind_of(value), 1, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.made_);
  }
  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, const std::vector<T>& values) {
    return set(name, kind_of(T{}), static_cast<int64_t>(values.size()), values.data());
  }
  Descriptor& set(cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t n, const void*);
  Descriptor& finalize();

  cudnnBackendDescriptor_t get() const { return made_; }
  int64_t integer(cudnnBackendAttributeName_t) const;
  /// Lists of notes.
  std::vector<int32_t> notes(cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t most) const;

 private:
  static cudnnBackendAttributeType_t kind_of(bool) { return CUDNN_TYPE_BOOLEAN; }
  static cudnnBackendAttributeType_t kind_of(int64_t) { return CUDNN_TYPE_INT64; }
  static cudnnBackendAttributeType_t kind_of(float) { return CUDNN_TYPE_FLOAT; }
  static cudnnBackendAttributeType_t kind_of(double) { return CUDNN_TYPE_DOUBLE; }
  static cudnnBackendAttributeType_t kind_of(void*) { return CUDNN_TYPE_VOID_PTR; }
  static cudnnBackendAttributeType_t kind_of(cudnnHandle_t) { return CUDNN_TYPE_HANDLE; }
  static cudnnBackendAttributeType_t kind_of(cudnnDataType_t) { return CUDNN_TYPE_DATA_TYPE; }
  static cudnnBackendAttributeType_t kind_of(cudnnPointwiseMode_t) { return CUDNN_TYPE_POINTWISE_MODE; }
  static cudnnBackendAttributeType_t kind_of(cudnnConvolutionMode_t) { return CUDNN_TYPE_CONVOLUTION_MODE; }
  static cudnnBackendAttributeType_t kind_of(cudnnBackendHeurMode_t) { return CUDNN_TYPE_HEUR_MODE; }
  static cudnnBackendAttributeType_t kind_of(cudnnBackendNormMode_t) { return CUDNN_TYPE_NORM_MODE; }
  static cudnnBackendAttributeType_t kind_of(cudnnBackendNormFwdPhase_t) { return CUDNN_TYPE_NORM_FWD_PHASE; }
  static cudnnBackendAttributeType_t kind_of(cudnnReduceTensorOp_t) {
    return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
  }

  cudnnBackendDescriptor_t made_ = nullptr;
};

}  // namespace weft::cudnn
