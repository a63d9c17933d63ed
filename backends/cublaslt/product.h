#pragma once
#include "library.h"
#include "weft/backend/product.hpp"

namespace weft::cublaslt {

struct Shape : backend::Product {
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
