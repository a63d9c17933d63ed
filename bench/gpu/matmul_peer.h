#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "weft/dtype.h"

/// cuBLASLt's product of row-major matrices of f32, bf16 or f16, c = a b, by the algorithm that it
/// recommends.
class Peer {
 public:
  Peer(int64_t m, int64_t n, int64_t k, int64_t batch, bool transpose_a, bool transpose_b, weft::DType);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  bool run(const void* a, const void* b, void* c, cudaStream_t) const;

 private:
  struct State;
  State* state_;
};
