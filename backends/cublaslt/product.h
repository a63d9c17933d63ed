#pragma once
#include "library.h"

namespace weft::cublaslt {

/// A product of row-major matrices, for each of a batch: c = a b (+ bias) (+ what `onto` points to).
struct Shape {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  int64_t a_stride = 0, b_stride = 0;  ///< elements between the matrices of the batch; 0: one for all
  bool transpose_a = false, transpose_b = false, bias = false, adds = false;
  DType dtype = DType::f32;
  bool tf32 = false;
};

/// cuBLASLt's descriptors and algorithms for a shape. Its matrices are column-major: c = a b of row-major
/// matrices is its c' = b' a', so its a is our b.
class Product {
 public:
  backend::Outcome prepare(const Shape&, int device);
  /// Bytes that `run` wants, at any address.
  uint64_t workspace() const { return workspace_ ? workspace_ + kWorkspaceAlignment : 0; }
  struct Operands {
    const void *a, *b;
    const void* bias;  ///< a vector; null where there is none
    const void* onto;  ///< what is added to the product, and may be c; null where nothing is
    void* c;
  };
  backend::Outcome run(const Operands&, void* workspace, cudaStream_t) const;

 private:
  static constexpr uint64_t kWorkspaceAlignment = 256;
  backend::Outcome describe();
  /// The algorithm for operands that are aligned to so many bytes, with at most this workspace.
  backend::Outcome choose(uint64_t alignment, size_t most_workspace, cublasLtMatmulHeuristicResult_t*);

  Shape shape_;
  cublasLtHandle_t handle_ = nullptr;
  struct Descriptors {
    cublasLtMatmulDescOpaque_t operation{};
    cublasLtMatrixLayoutOpaque_t a{}, b{}, c{};
  } descriptors_;
  cublasLtMatmulAlgo_t aligned_{}, any_{};  // for operands that begin at 16 bytes, and for others
  uint64_t workspace_ = 0;
};

}  // namespace weft::cublaslt
