#include "product.h"

namespace weft::cublaslt {

using backend::Outcome;

namespace {

constexpr size_t kMostWorkspace = size_t{32} << 20;

cudaDataType_t type_of(DType t) {
  switch (t) {
    case DType::f64: return CUDA_R_64F;
    case DType::f16: return CUDA_R_16F;
    case DType::bf16: return CUDA_R_16BF;
    default: return CUDA_R_32F;
  }
}

/// A row-major matrix of these sizes, as cuBLASLt sees it.
Outcome layout(cublasLtMatrixLayoutOpaque_t* to, DType dtype, int64_t rows, int64_t columns, int64_t batch,
               int64_t stride) {
  WEFT_LT_TRY(cublasLtMatrixLayoutInit_internal(
      to, sizeof *to, type_of(dtype), static_cast<uint64_t>(columns), static_cast<uint64_t>(rows), columns));
  if (batch == 1) return Outcome::ok();
  const auto count = static_cast<int32_t>(batch);
  WEFT_LT_TRY(cublasLtMatrixLayoutSetAttribute(to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
  WEFT_LT_TRY(cublasLtMatrixLayoutSetAttribute(to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                               sizeof stride));
  return Outcome::ok();
}

}  // namespace

Outcome Product::describe() {
  const Shape& s = shape_;
  const bool f64 = s.dtype == DType::f64;
  const auto compute = f64 ? CUBLAS_COMPUTE_64F : s.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  WEFT_LT_TRY(cublasLtMatmulDescInit_internal(&descriptors_.operation, sizeof descriptors_.operation, compute,
                                              f64 ? CUDA_R_64F : CUDA_R_32F));
  const auto set = [&](cublasLtMatmulDescAttributes_t which, const auto& value) -> Outcome {
    WEFT_LT_TRY(cublasLtMatmulDescSetAttribute(&descriptors_.operation, which, &value, sizeof value));
    return Outcome::ok();
  };
  const cublasOperation_t of_a = s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                          of_b = s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  if (auto done = set(CUBLASLT_MATMUL_DESC_TRANSA, of_a); !done.good()) return done;
  if (auto done = set(CUBLASLT_MATMUL_DESC_TRANSB, of_b); !done.good()) return done;
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
  if (s.bias)
    if (auto done = set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue); !done.good()) return done;
  if (auto made = layout(&descriptors_.a, s.dtype, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n,
                         s.batch, s.b_stride);
      !made.good())
    return made;
  if (auto made = layout(&descriptors_.b, s.dtype, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k,
                         s.batch, s.a_stride);
      !made.good())
    return made;
  return layout(&descriptors_.c, s.dtype, s.m, s.n, s.batch, s.m * s.n);
}

Outcome Product::choose(uint64_t alignment, size_t most_workspace, cublasLtMatmulHeuristicResult_t* result) {
  cublasLtMatmulPreferenceOpaque_t preference{};
  WEFT_LT_TRY(cublasLtMatmulPreferenceInit_internal(&preference, sizeof preference));
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t which, const auto& value) -> Outcome {
    WEFT_LT_TRY(cublasLtMatmulPreferenceSetAttribute(&preference, which, &value, sizeof value));
    return Outcome::ok();
  };
  if (auto done = set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace); !done.good()) return done;
  // Partial sums of halves are added in f32, never in the type of the result.
  const bool half = shape_.dtype == DType::f16 || shape_.dtype == DType::bf16;
  const uint32_t reductions =
      CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | (half ? 0u : uint32_t{CUBLASLT_REDUCTION_SCHEME_INPLACE});
  if (auto done = set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions); !done.good()) return done;
  for (const auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    if (auto done = set(which, static_cast<uint32_t>(alignment)); !done.good()) return done;
  Descriptors& d = descriptors_;
  int found = 0;
  WEFT_LT_TRY(cublasLtMatmulAlgoGetHeuristic(handle_, &d.operation, &d.a, &d.b, &d.c, &d.c, &preference, 1,
                                             result, &found));
  if (found == 0) return Outcome::fail(WEFT_UNSUPPORTED, "cuBLASLt has no algorithm for it");
  return Outcome::ok();
}

Outcome Product::prepare(const Shape& shape, int device) {
  shape_ = shape;
  if (auto ready = handle_of(device, &handle_); !ready.good()) return ready;
  if (auto described = describe(); !described.good()) return described;
  cublasLtMatmulHeuristicResult_t result{};
  if (auto chosen = choose(16, kMostWorkspace, &result); !chosen.good()) return chosen;
  aligned_ = result.algo, workspace_ = result.workspaceSize;
  if (auto chosen = choose(byte_size(shape.dtype), workspace_, &result); !chosen.good()) return chosen;
  any_ = result.algo;
  return Outcome::ok();
}

Outcome Product::run(const Operands& o, void* workspace, cudaStream_t stream) const {
  const float one = 1, beta = shape_.adds ? 1 : 0;
  const double one64 = 1, beta64 = beta;
  const bool f64 = shape_.dtype == DType::f64;
  const auto at = [](const void* p) { return reinterpret_cast<uintptr_t>(p); };
  auto* const scratch = reinterpret_cast<void*>((at(workspace) + kWorkspaceAlignment - 1) /
                                                kWorkspaceAlignment * kWorkspaceAlignment);
  const auto& algorithm = (at(o.a) | at(o.b) | at(o.bias) | at(o.onto) | at(o.c)) % 16 == 0 ? aligned_ : any_;
  Descriptors d = descriptors_;
  if (shape_.bias)
    WEFT_LT_TRY(cublasLtMatmulDescSetAttribute(&d.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &o.bias,
                                               sizeof o.bias));
  const cublasStatus_t status = library().cublasLtMatmul(
      handle_, &d.operation, f64 ? static_cast<const void*>(&one64) : &one, o.b, &d.a, o.a, &d.b,
      f64 ? static_cast<const void*>(&beta64) : &beta, o.onto ? o.onto : o.c, &d.c, o.c, &d.c, &algorithm,
      workspace_ ? scratch : nullptr, workspace_, stream);
  if (status == CUBLAS_STATUS_SUCCESS) return Outcome::ok();
  return Outcome::fail(
      WEFT_DEVICE,
      "cublasLtMatmul: cuBLAS status {} for {} {} x {} x {}, batch {}, a{} {}, b{} {}, c {}, onto {}, "
      "bias {}, {} bytes of workspace at {}",
      static_cast<int>(status), name(shape_.dtype), shape_.m, shape_.n, shape_.k, shape_.batch,
      shape_.transpose_a ? " transposed" : "", at(o.a), shape_.transpose_b ? " transposed" : "", at(o.b),
      at(o.c), at(o.onto), at(o.bias), workspace_, at(workspace));
}

}  // namespace weft::cublaslt
