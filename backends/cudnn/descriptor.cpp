#include "descriptor.h"

namespace weft::cudnn {

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  WEFT_CUDNN_TRY(cudnnBackendCreateDescriptor(type, &made_));
}
Descriptor::~Descriptor() {
  if (made_) library().cudnnBackendDestroyDescriptor(made_);
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
                            const void* values) {
  WEFT_CUDNN_TRY(cudnnBackendSetAttribute(made_, name, type, n, values));
  return *this;
}

Descriptor& Descriptor::finalize() {
  WEFT_CUDNN_TRY(cudnnBackendFinalize(made_));
  return *this;
}

int64_t Descriptor::integer(cudnnBackendAttributeName_t name) const {
  int64_t n = 0, value = 0;
  WEFT_CUDNN_TRY(cudnnBackendGetAttribute(made_, name, CUDNN_TYPE_INT64, 1, &n, &value));
  return value;
}

std::vector<int32_t> Descriptor::notes(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                       int64_t most) const {
  int64_t n = 0;
  std::vector<int32_t> list(static_cast<size_t>(most));
  WEFT_CUDNN_TRY(cudnnBackendGetAttribute(made_, name, type, most, &n, list.data()));
  list.resize(static_cast<size_t>(n));
  return list;
}

}  // namespace weft::cudnn
