#pragma once
#include <cudnn_graph.h>

#include <string>

#include "weft/backend.hpp"

// cuDNN 9, opened on first use.
namespace weft::cudnn {

// clang-format off
#define WEFT_CUDNN(X) \
  X(cudnnGetVersion) X(cudnnGetErrorString) X(cudnnGetLastErrorString) X(cudnnCreate) X(cudnnDestroy) \
  X(cudnnSetStream) X(cudnnBackendCreateDescriptor) X(cudnnBackendDestroyDescriptor) \
  X(cudnnBackendSetAttribute) X(cudnnBackendGetAttribute) X(cudnnBackendFinalize) X(cudnnBackendExecute)
// clang-format on

struct Library {
#define WEFT_DECLARE(f) decltype(&::f) f = nullptr;
  WEFT_CUDNN(WEFT_DECLARE)
#undef WEFT_DECLARE
  std::string version;
  std::string missing;  ///< why it can't be used; empty if it can
};

const Library& library();

/// A call of cuDNN that failed: thrown, since graphs are made of hundreds of calls. `outcome` is what came.
struct Failure {
  backend::Outcome outcome;
};
/// Throws what went wrong, in cuDNN's words.
void check(cudnnStatus_t status, const char* what);

#define WEFT_CUDNN_TRY(call) ::weft::cudnn::check(::weft::cudnn::library().call, #call)

}  // namespace weft::cudnn
