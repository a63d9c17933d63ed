#pragma once
#include <cuda_runtime_api.h>

#include <stdexcept>

#include "operands.h"
#include "sizes.h"

// FlashAttention-2, called by the structs of its flash.h.
namespace weft::mha {

/// The stream of a launch's queue, whose device becomes current.
backend::Outcome stream_of(const backend::Launch&, void** to);  // mha.cpp

/// Whether the current device can run the kernels.
backend::Support takes_device();

/// Has `f` enqueue work on the stream of a launch; what fails there is thrown.
template <class F>
backend::Outcome enqueue(const backend::Launch& l, F f) {
  void* stream = nullptr;
  if (auto got = stream_of(l, &stream); !got.good()) return got;
  try {
    const Operands operands(l, static_cast<cudaStream_t>(stream));
    f(operands, static_cast<cudaStream_t>(stream));
    operands.put_back();
    return backend::Outcome::ok();
  } catch (const std::runtime_error& failure) {
    return backend::Outcome::fail(WEFT_DEVICE, "flash-attn: {}", failure.what());
  }
}

/// y and lse of q, k and v.
void attention(const Sizes&, const Operands&, cudaStream_t);

/// What the gradients want beside operands, in bytes from the beginning of a workspace that begins at a
/// multiple of 256: sums of y dy, dq in f32, and dk and dv of each query head where heads share them.
struct Rooms {
  uint64_t row_sums = 0, dq = 0, dk = 0, dv = 0, end = 0;
  int64_t pieces = 1;  ///< of dq, which are added up in their order
};
/// With `repeatable`, no sum depends on the order in which blocks run: each block that adds to dq has a
/// piece.
Rooms rooms_of(const Sizes&, bool repeatable);
void attention_grad(const Sizes&, const Operands&, const Rooms&, bool repeatable, char* workspace,
                    cudaStream_t);

}  // namespace weft::mha
