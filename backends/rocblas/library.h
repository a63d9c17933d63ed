#pragma once
#include <string>

#include "weft/backend.hpp"

// rocBLAS, opened on first use.
namespace weft::rocblas {

/// Declared here as rocBLAS's headers declare it, so that they are not needed.
using Handle = struct HandleOfLibrary*;
enum Status { kStatusSuccess = 0, kStatusNotImplemented = 2 };
enum Operation { kPlain = 111, kTransposed = 112 };
enum DataType { kF16 = 150, kF32 = 151, kF64 = 152, kBf16 = 168 };

struct Library {
  Status (*rocblas_create_handle)(Handle*);
  Status (*rocblas_destroy_handle)(Handle);
  Status (*rocblas_set_stream)(Handle, void* stream);
  Status (*rocblas_set_workspace)(Handle, void* at, size_t bytes);
  Status (*rocblas_set_atomics_mode)(Handle, int mode);  // 0: sums have one order
  Status (*rocblas_get_version_string)(char* text, size_t bytes);
  /// d = alpha a b + beta c of column-major matrices, for each of a batch. Strides are between its matrices.
  Status (*rocblas_gemm_strided_batched_ex)(Handle, Operation of_a, Operation of_b, int m, int n, int k,
                                            const void* alpha, const void* a, DataType, int lda,
                                            int64_t stride_a, const void* b, DataType, int ldb,
                                            int64_t stride_b, const void* beta, const void* c, DataType,
                                            int ldc, int64_t stride_c, void* d, DataType, int ldd,
                                            int64_t stride_d, int batch, DataType computes, int algorithm,
                                            int32_t solution, uint32_t flags);
  std::string version;
  std::string missing;  ///< why it can't be used; empty if it can
};

const Library& library();
backend::Outcome outcome(Status, const char* what);

#define WEFT_ROCBLAS_TRY(call)                                                                      \
  if (auto tried = ::weft::rocblas::outcome(::weft::rocblas::library().call, #call); !tried.good()) \
  return tried

}  // namespace weft::rocblas
