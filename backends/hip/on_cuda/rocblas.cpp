#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <initializer_list>

// librocblas by cuBLAS, for the provider `rocblas` where backends/hip runs on an NVIDIA GPU. Declared as
// cublas_v2.h declares it, which a small toolkit lacks.
namespace {

enum Status { kSuccess = 0, kNotImplemented = 2, kInternalError = 6 };

void* cublas(const char* name) {
  static void* const library = [] {
    void* found = nullptr;
    for (const char* file : {"libcublas.so.13", "libcublas.so.12"})
      if (!found) found = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    return found;
  }();
  return library ? dlsym(library, name) : nullptr;
}
template <class... A>
Status call(const char* name, A... arguments) {
  constexpr int kNotSupported = 15;
  const auto f = reinterpret_cast<int (*)(A...)>(cublas(name));
  const int got = f ? f(arguments...) : -1;
  return got == 0 ? kSuccess : got == kNotSupported ? kNotImplemented : kInternalError;
}

int operation_of(int rocblas) { return rocblas == 112 ? 1 : 0; }
int type_of(int rocblas) {
  switch (rocblas) {
    case 150: return 2;   // CUDA_R_16F
    case 152: return 1;   // CUDA_R_64F
    case 168: return 14;  // CUDA_R_16BF
    default: return 0;    // CUDA_R_32F
  }
}

}  // namespace

#define WEFT_EXPORT extern "C" __attribute__((visibility("default")))

WEFT_EXPORT Status rocblas_create_handle(void** handle) {
  constexpr int kNoSumsOfHalves = 16;  // CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION
  const Status made = call("cublasCreate_v2", handle);
  return made == kSuccess ? call("cublasSetMathMode", *handle, kNoSumsOfHalves) : made;
}
WEFT_EXPORT Status rocblas_destroy_handle(void* handle) { return call("cublasDestroy_v2", handle); }
WEFT_EXPORT Status rocblas_set_stream(void* handle, void* stream) {
  return call("cublasSetStream_v2", handle, stream);
}
WEFT_EXPORT Status rocblas_set_workspace(void* handle, void* at, size_t bytes) {
  return call("cublasSetWorkspace_v2", handle, at, bytes);
}
WEFT_EXPORT Status rocblas_set_atomics_mode(void* handle, int mode) {
  return call("cublasSetAtomicsMode", handle, mode);
}
WEFT_EXPORT Status rocblas_get_version_string(char* text, size_t bytes) {
  std::snprintf(text, bytes, "cuBLAS");
  return kSuccess;
}
WEFT_EXPORT Status rocblas_gemm_strided_batched_ex(void* handle, int of_a, int of_b, int m, int n, int k,
                                                   const void* alpha, const void* a, int a_type, int lda,
                                                   int64_t stride_a, const void* b, int b_type, int ldb,
                                                   int64_t stride_b, const void* beta, const void* c, int,
                                                   int, int64_t, void* d, int d_type, int ldd,
                                                   int64_t stride_d, int batch, int computes, int, int32_t,
                                                   uint32_t) {
  if (c != d) return kNotImplemented;
  const int compute = computes == 152 ? 70 : 68;  // CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_32F
  constexpr int kDefaultAlgorithm = -1;
  return call("cublasGemmStridedBatchedEx", handle, operation_of(of_a), operation_of(of_b), m, n, k, alpha, a,
              type_of(a_type), lda, static_cast<long long>(stride_a), b, type_of(b_type), ldb,
              static_cast<long long>(stride_b), beta, d, type_of(d_type), ldd,
              static_cast<long long>(stride_d), batch, compute, kDefaultAlgorithm);
}
