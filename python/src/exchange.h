#pragma once
#include <dlpack/dlpack.h>

// DLPack's exchange of tensors through C functions, version 1.3, which is newer than the header here. A class
// of tensors has a capsule of them, __dlpack_c_exchange_api__; PyTorch has it since 2.10.
namespace weft::python::exchange {

struct Version {
  uint32_t major, minor;
};

struct ManagedTensor {
  Version version;
  void* manager_ctx;
  void (*deleter)(ManagedTensor* self);
  uint64_t flags;
  DLTensor dl_tensor;
};

struct Header {
  Version version;
  Header* previous;
};

/// Each function returns 0, or -1 with Python's error set.
struct Api {
  Header header;
  int (*allocate)(DLTensor* like, ManagedTensor** out, void* context,
                  void (*fail)(void* context, const char* kind, const char* message));
  int (*from_object)(void* object, ManagedTensor** out);
  int (*to_object)(ManagedTensor* tensor, void** object);
  /// `out` points into the object, which must stay.
  int (*borrow)(void* object, DLTensor* out);
  int (*current_stream)(DLDeviceType type, int32_t device, void** stream);
};

constexpr const char* kCapsule = "dlpack_exchange_api";

}  // namespace weft::python::exchange
