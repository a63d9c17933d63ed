#pragma once
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <string>

#include "weft/backend.hpp"

// cuBLASLt, opened on first use.
namespace weft::cublaslt {

// clang-format off
#define WEFT_CUBLASLT(X) \
  X(cublasLtCreate) X(cublasLtGetVersion) X(cublasLtMatmul) X(cublasLtMatmulAlgoGetHeuristic) \
  X(cublasLtMatmulDescInit_internal) X(cublasLtMatmulDescSetAttribute) \
  X(cublasLtMatrixLayoutInit_internal) X(cublasLtMatrixLayoutSetAttribute) \
  X(cublasLtMatmulPreferenceInit_internal) X(cublasLtMatmulPreferenceSetAttribute)
// clang-format on

struct Library {
#define WEFT_DECLARE(f) decltype(&::f) f = nullptr;
  WEFT_CUBLASLT(WEFT_DECLARE)
#undef WEFT_DECLARE
  std::string version;
  std::string missing;  ///< why it can't be used; empty if it can
};

const Library& library();
/// The handle of the current device.
backend::Outcome handle_of(int device, cublasLtHandle_t* handle);
backend::Outcome outcome(cublasStatus_t status, const char* what);

#define WEFT_LT_TRY(call)                                                                             \
  if (auto tried = ::weft::cublaslt::outcome(::weft::cublaslt::library().call, #call); !tried.good()) \
  return tried

}  // namespace weft::cublaslt
