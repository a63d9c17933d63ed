#include "matmul_peer.h"

#include <cstdio>
#include <cstdlib>

#include "../../backends/cublaslt/library.h"

using weft::DType;
using weft::cublaslt::library;

namespace {

constexpr size_t kWorkspace = size_t{64} << 20;

void require(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::printf("%s: cuBLAS status %d\n", what, static_cast<int>(status));
  std::exit(1);
}
#define REQUIRE(call) require(library().call, #call)

cudaDataType_t type_of(DType t) {
  return t == DType::f32 ? CUDA_R_32F : t == DType::bf16 ? CUDA_R_16BF : CUDA_R_16F;
}

cublasLtMatrixLayoutOpaque_t layout(DType dtype, int64_t rows, int64_t columns, int64_t batch) {
  cublasLtMatrixLayoutOpaque_t made{};
  // Row-major rows x columns are column-major columns x rows.
  REQUIRE(cublasLtMatrixLayoutInit_internal(&made, sizeof made, type_of(dtype),
                                            static_cast<uint64_t>(columns), static_cast<uint64_t>(rows),
                                            columns));
  const auto count = static_cast<int32_t>(batch);
  const int64_t stride = rows * columns;
  REQUIRE(cublasLtMatrixLayoutSetAttribute(&made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
  REQUIRE(cublasLtMatrixLayoutSetAttribute(&made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                           sizeof stride));
  return made;
}

}  // namespace

struct Peer::State {
  cublasLtHandle_t handle{};
  cublasLtMatmulDescOpaque_t operation{};
  cublasLtMatrixLayoutOpaque_t a{}, b{}, c{};
  cublasLtMatmulAlgo_t algorithm{};
  void* workspace = nullptr;
};

Peer::Peer(int64_t m, int64_t n, int64_t k, int64_t batch, bool transpose_a, bool transpose_b, DType dtype)
    : state_(new State) {
  if (!library().missing.empty()) {
    std::printf("%s: put its folder into LD_LIBRARY_PATH\n", library().missing.c_str());
    std::exit(1);
  }
  State& s = *state_;
  if (const auto made = weft::cublaslt::handle_of(0, &s.handle); !made.good()) {
    std::printf("%s\n", made.text.c_str());
    std::exit(1);
  }
  REQUIRE(cublasLtMatmulDescInit_internal(&s.operation, sizeof s.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  // c' = b' a' of column-major matrices.
  const cublasOperation_t of_first = transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                          of_second = transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  REQUIRE(
      cublasLtMatmulDescSetAttribute(&s.operation, CUBLASLT_MATMUL_DESC_TRANSA, &of_first, sizeof of_first));
  REQUIRE(cublasLtMatmulDescSetAttribute(&s.operation, CUBLASLT_MATMUL_DESC_TRANSB, &of_second,
                                         sizeof of_second));
  s.a = layout(dtype, transpose_b ? n : k, transpose_b ? k : n, batch);
  s.b = layout(dtype, transpose_a ? k : m, transpose_a ? m : k, batch);
  s.c = layout(dtype, m, n, batch);
  cublasLtMatmulPreferenceOpaque_t preference{};
  REQUIRE(cublasLtMatmulPreferenceInit_internal(&preference, sizeof preference));
  REQUIRE(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &kWorkspace, sizeof kWorkspace));
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  REQUIRE(cublasLtMatmulAlgoGetHeuristic(s.handle, &s.operation, &s.a, &s.b, &s.c, &s.c, &preference, 1,
                                         &result, &found));
  s.algorithm = result.algo;
  if (found == 0 || cudaMalloc(&s.workspace, kWorkspace) != cudaSuccess) {
    std::printf("cuBLASLt has no algorithm for it, or there is no memory for its workspace\n");
    std::exit(1);
  }
}

Peer::~Peer() {
  cudaFree(state_->workspace);
  delete state_;
}

bool Peer::run(const void* a, const void* b, void* c, cudaStream_t stream) const {
  const float one = 1, zero = 0;
  State& s = *state_;
  return library().cublasLtMatmul(s.handle, &s.operation, &one, b, &s.a, a, &s.b, &zero, c, &s.c, c, &s.c,
                                  &s.algorithm, s.workspace, kWorkspace, stream) == CUBLAS_STATUS_SUCCESS;
}
